/* Functions of other libraries that this one answers in their place: of NVIDIA's compilers, where a
   program would get machine code, which is not recorded. */

#ifndef CUTRACE_INTERPOSE_H
#define CUTRACE_INTERPOSE_H

/* Their own function of this name, where the program found it or would find it. */
void *theirs(const char *name);

/* Note their functions in a library that is loaded; ours in place of a function of theirs. */
void find_theirs(const char *path);
void *ours_for(const void *function);

/* Whether a process that ran already opened this library; what is done when Python has loaded a
   module, and with it other libraries. */
extern int is_within;
extern void (*on_python_module)(void);

/* embedded.c: have the runtime that is in libraries loaded since call ours. */
void redirect_new_libraries(void);

/* Whether that was done for the library that is loaded here. */
int is_redirected(const void *base);

/* Have that done for all libraries from now on, before anything of them runs. */
void watch_loader(void);

#endif
