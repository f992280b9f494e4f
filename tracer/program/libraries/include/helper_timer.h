/* Timers of the host, in milliseconds, as CUDA's samples call them. It is taken where a program's
   own folders have none. */

#ifndef COMMON_HELPER_TIMER_H_
#define COMMON_HELPER_TIMER_H_

#include <chrono>

class StopWatchInterface {
    typedef std::chrono::steady_clock clock;
    clock::time_point begin;
    float total = 0, last = 0;
    int sessions = 0;
    bool is_running = false;

    float now() const
    {
        return std::chrono::duration<float, std::milli>(clock::now() - begin).count();
    }

  public:
    void start()
    {
        begin = clock::now();
        is_running = true;
    }
    void stop()
    {
        last = now();
        total += last;
        sessions++;
        is_running = false;
    }
    void reset()
    {
        total = last = 0;
        sessions = 0;
        begin = clock::now();
    }
    float getTime() { return is_running ? total + now() : total; }
    float getAverageTime() { return sessions ? total / sessions : 0; }
};

inline bool sdkCreateTimer(StopWatchInterface **timer)
{
    *timer = new StopWatchInterface;
    return true;
}

inline bool sdkDeleteTimer(StopWatchInterface **timer)
{
    delete *timer;
    *timer = 0;
    return true;
}

#define CUTRACE_TIMER(name, verb)                                                                \
    inline bool name(StopWatchInterface **timer)                                                 \
    {                                                                                            \
        if (*timer)                                                                              \
            (*timer)->verb();                                                                    \
        return true;                                                                             \
    }
CUTRACE_TIMER(sdkStartTimer, start)
CUTRACE_TIMER(sdkStopTimer, stop)
CUTRACE_TIMER(sdkResetTimer, reset)
#undef CUTRACE_TIMER

inline float sdkGetTimerValue(StopWatchInterface **timer)
{
    return *timer ? (*timer)->getTime() : 0;
}

inline float sdkGetAverageTimerValue(StopWatchInterface **timer)
{
    return *timer ? (*timer)->getAverageTime() : 0;
}

#endif
