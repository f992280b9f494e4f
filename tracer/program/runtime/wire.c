/* The connection to the recorder: a socket that the environment names. Each process that uses the
   device connects for itself, and is handed the file of device memory. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "checksum.h"
#include "runtime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int line = -1, arena = -1;
static enum { FRESH, OPEN, LOST } state = FRESH;
struct device device;

static const char *question_fields(enum kind kind)
{
    switch (kind) {
#define MESSAGE(name, number, question, answer) case name: return question;
        MESSAGES(MESSAGE)
#undef MESSAGE
    }
    return "";
}

static const char *answer_fields(enum kind kind)
{
    switch (kind) {
#define MESSAGE(name, number, question, answer) case name: return answer;
        MESSAGES(MESSAGE)
#undef MESSAGE
    }
    return "";
}

/* A mistake in this library, not in the program. */
static void expect_field(struct message *message, char field)
{
    if (*message->fields++ != field) {
        fprintf(stderr, "cutrace: internal error, please report it: message %d has no field %c\n",
                message->kind, field);
        abort();
    }
}

static void append(struct message *message, const void *data, size_t bytes)
{
    if (message->bytes + bytes > message->room) {
        message->room = 2 * (message->bytes + bytes);
        message->data = realloc(message->data, message->room);
        if (!message->data)
            abort();
    }
    if (bytes)
        memcpy(message->data + message->bytes, data, bytes);
    message->bytes += bytes;
}

struct message question(enum kind kind)
{
    struct message message = {.kind = kind, .fields = question_fields(kind)};
    uint32_t head[2] = {kind, 0};
    append(&message, head, sizeof head);
    return message;
}

void put32(struct message *message, uint32_t value)
{
    expect_field(message, 'I');
    append(message, &value, sizeof value);
}

void put64(struct message *message, uint64_t value)
{
    expect_field(message, 'Q');
    append(message, &value, sizeof value);
}

void put_bytes(struct message *message, const void *data, size_t bytes)
{
    uint32_t count = bytes;
    expect_field(message, 's');
    append(message, &count, sizeof count);
    append(message, data, bytes);
}

void put_text(struct message *message, const char *text)
{
    put_bytes(message, text, strlen(text));
}

static const void *take(struct message *message, size_t bytes)
{
    const void *place = message->data + message->at;
    message->at += bytes;
    return message->at <= message->bytes ? place : "\0\0\0\0\0\0\0";
}

uint32_t take32(struct message *message)
{
    uint32_t value;
    expect_field(message, 'I');
    memcpy(&value, take(message, sizeof value), sizeof value);
    return value;
}

uint64_t take64(struct message *message)
{
    uint64_t value;
    expect_field(message, 'Q');
    memcpy(&value, take(message, sizeof value), sizeof value);
    return value;
}

const void *take_bytes(struct message *message, size_t *bytes)
{
    uint32_t count;
    expect_field(message, 's');
    memcpy(&count, take(message, sizeof count), sizeof count);
    *bytes = count;
    return take(message, count);
}

void close_message(struct message *message)
{
    free(message->data);
    message->data = NULL;
}

static int send_all(const char *data, size_t bytes)
{
    while (bytes) {
        ssize_t sent = send(line, data, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        data += sent;
        bytes -= sent;
    }
    return 0;
}

static int receive_all(void *data, size_t bytes)
{
    char *into = data;
    while (bytes) {
        ssize_t got = recv(line, into, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        into += got;
        bytes -= got;
    }
    return 0;
}

static int lose(void)
{
    state = LOST;
    return cudaErrorInitializationError;
}

static int send_message(struct message *message)
{
    uint32_t *head = (uint32_t *)message->data;
    head[1] = message->bytes - sizeof(uint32_t[2]);
    if (*message->fields)
        expect_field(message, '\0');
    return send_all(message->data, message->bytes);
}

/* One question and its answer; the lock is held. */
static int exchange(struct message *message)
{
    uint32_t head[2];
    if (send_message(message) || receive_all(head, sizeof head))
        return lose();
    message->fields = answer_fields(message->kind);
    message->at = message->bytes = 0;
    if (head[1] > message->room) {
        message->room = head[1];
        message->data = realloc(message->data, message->room);
        if (!message->data)
            abort();
    }
    if (receive_all(message->data, head[1]))
        return lose();
    message->bytes = head[1];
    return head[0];
}

/* A child that the program forked has no device, as with CUDA. */
static void forget(void)
{
    if (state == OPEN) {
        close(line);
        state = LOST;
    }
    pthread_mutex_init(&lock, NULL);
}

static int map_arena(uint64_t address, uint64_t bytes)
{
    void *wanted = (void *)(uintptr_t)address;
    int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *got = mmap(wanted, bytes, PROT_READ | PROT_WRITE, flags, arena, 0);
    if (got == wanted)
        return 0;
    fprintf(stderr, "cutrace: the addresses of device memory, %p and on, are taken in this program\n",
            wanted);
    return -1;
}

static int greet(void)
{
    struct message hello = question(HELLO);
    size_t bytes;
    put32(&hello, getpid());
    put32(&hello, WIRE_CHECKSUM);
    int status = exchange(&hello);
    if (status)
        return status;
    device.base = take64(&hello);
    device.bytes = take64(&hello);
    device.constants = take64(&hello);
    device.texels = take64(&hello);
    const void *facts = take_bytes(&hello, &bytes);
    if (bytes != sizeof device.facts) {
        fprintf(stderr, "cutrace: this library is of another version than the recorder\n");
        return lose();
    }
    memcpy(&device.facts, facts, bytes);
    const char *name = take_bytes(&hello, &bytes);
    snprintf(device.name, sizeof device.name, "%.*s", (int)bytes, name);
    close_message(&hello);
    return map_arena(device.base, device.bytes) ? lose() : 0;
}

/* Connect to the socket of this name; -1 if nobody answers there. */
static int reach(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(name) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, name);
    line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return line < 0 ? -1 : connect(line, (struct sockaddr *)&address, sizeof address);
}

/* The first that the recorder sends: a byte, and with it the file of device memory. */
static int receive_arena(void)
{
    char byte, control[CMSG_SPACE(sizeof arena)];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t got;
    do
        got = recvmsg(line, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    struct cmsghdr *sent = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!sent || sent->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(&arena, CMSG_DATA(sent), sizeof arena);
    return 0;
}

static int open_line(void)
{
    const char *where = getenv("CUTRACE_RECORDER");
    if (!where || reach(where) || receive_arena()) {
        fprintf(stderr, "cutrace: nobody records this program: start it with "
                        "`cutrace record -- PROGRAM`\n");
        state = LOST;
        return cudaErrorNoDevice;
    }
    state = OPEN;
    pthread_atfork(NULL, NULL, forget);
    return greet();
}

static int ensure_open(void)
{
    if (state == FRESH)
        return open_line();
    return state == OPEN ? 0 : cudaErrorInitializationError;
}

int connect_recorder(void)
{
    pthread_mutex_lock(&lock);
    int status = ensure_open();
    pthread_mutex_unlock(&lock);
    return status;
}

int ask(struct message *message)
{
    pthread_mutex_lock(&lock);
    int status = ensure_open();
    if (!status)
        status = exchange(message);
    pthread_mutex_unlock(&lock);
    return status;
}

void tell(struct message *message)
{
    pthread_mutex_lock(&lock);
    if (!ensure_open() && send_message(message))
        lose();
    pthread_mutex_unlock(&lock);
    close_message(message);
}
