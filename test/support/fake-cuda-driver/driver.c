/*
 * A CUDA driver whose card is the main memory. It demands what a real one does or may do: a current context,
 * page-locked host memory, pitches of at least the width. Copies, kernels and functions run only when their
 * stream, or an event behind them, is waited for; what is behind the event, later. The kernels are those of
 * logit-blocks.ptx, written plainly, and draw-tokens.cu itself.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
enum { INVALID = 1, NO_CONTEXT = 201, HOST = 1, DEVICE = 2, MOST = 4096, PINNED = 32, ARGUMENTS = 7, BLOCK = 128, STREAMS = 0x5000, EVENTS = 0x8000 };
typedef struct {
  size_t fromX, fromY; int fromType; const char *fromHost, *fromDevice; void *fromArray; size_t fromPitch;
  size_t toX, toY; int toType; char *toHost, *toDevice; void *toArray; size_t toPitch;
  size_t width, height;
} Copy;
typedef uint64_t Arguments[ARGUMENTS];
typedef struct { const char *name; int threads, arguments; void (*run)(unsigned, unsigned, const Arguments); } Kernel;
typedef struct { char *start; size_t bytes; } Clear;
typedef struct {
  size_t stream, event;
  void (*function)(void *);
  void *data;
  Copy copy;
  Clear clear;
  const Kernel *kernel;
  unsigned columns, rows;
  Arguments arguments;
} Work;
static int retained, depth, streams, events, queued, waits, failure, modules, refusal, spoiled, made, lacking = -1;
static Work queue[MOST];
static struct { char *start; size_t bytes; int registered; } pinned[PINNED];

int live(void) {
  int count = retained + depth + streams + events + queued + modules;
  for (int i = 0; i < PINNED; i++) count += pinned[i].start != 0;
  return count;
}
int waits_for_all(void) { return waits; }
int work(void) { return queued; }
void fail_with(int error) { failure = error; }
void refuse_kernels_with(int error) { refusal = error; }
void spoil_sums(void) { spoiled = 1; }
/** From now on, no memory is there for what is asked for after so many other things; −1 = there always is. */
void lack_after(int count) { lacking = count; }
int has_lacked(void) { return lacking < 0; }
static int lacks(void) { return lacking >= 0 && lacking-- == 0; }

int cuInit(unsigned flags) { return 0; }
int cuGetErrorString(int error, const char **text) { *text = "as the test demands"; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGet(int *device, int id) { *device = 40 + id; return 0; }
int cuDeviceGetName(char *name, int length, int device) { strncpy(name, "Memory", length); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (attribute != 75 && attribute != 76) return INVALID;
  *value = attribute == 75 ? 8 : 6;
  return 0;
}
int cuDevicePrimaryCtxRetain(size_t *context, int device) { if (lacks()) return 2; retained++; *context = 0x7000 + device; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { retained--; return device == 40 ? 0 : INVALID; }
int cuCtxPushCurrent_v2(size_t context) { if (context != 0x7028) return INVALID; depth++; return 0; }
int cuCtxPopCurrent_v2(size_t *context) { if (!depth) return NO_CONTEXT; depth--; *context = 0x7028; return 0; }
static void run_until(size_t stream, size_t event);
int cuCtxSynchronize(void) {
  if (!depth) return NO_CONTEXT;
  waits++;
  run_until(0, 0);
  return failure;
}
int cuStreamCreate(size_t *stream, unsigned flags) {
  if (!depth) return NO_CONTEXT;
  if (flags != 1) return INVALID;
  if (lacks()) return 2;
  streams++;
  *stream = STREAMS + ++made;
  return 0;
}
static int is_stream(size_t stream) { return stream > STREAMS && stream <= STREAMS + made; }
int cuStreamDestroy_v2(size_t stream) { if (!depth || !is_stream(stream)) return INVALID; streams--; return 0; }
int cuEventCreate(size_t *event, unsigned flags) {
  if (!depth) return NO_CONTEXT;
  if (lacks()) return 2;
  *event = EVENTS + ++events;
  return flags == 2 || flags == 0 ? 0 : INVALID;
}
int cuEventDestroy_v2(size_t event) { if (!depth || event <= EVENTS) return INVALID; events--; return 0; }
int cuMemHostAlloc(char **address, size_t bytes, unsigned flags) {
  if (!depth) return NO_CONTEXT;
  if (lacks()) return 2;
  for (int i = 0; i < PINNED; i++) if (!pinned[i].start) {
    *address = pinned[i].start = malloc(bytes);
    pinned[i].bytes = bytes;
    return 0;
  }
  return 2;
}
int cuMemHostRegister_v2(char *start, size_t bytes, unsigned flags) {
  if (!depth) return NO_CONTEXT;
  if (lacks()) return 2;
  for (int i = 0; i < PINNED; i++) if (!pinned[i].start) {
    pinned[i].start = start;
    pinned[i].bytes = bytes;
    pinned[i].registered = 1;
    return 0;
  }
  return 2;
}
int cuMemHostUnregister(char *start) {
  for (int i = 0; i < PINNED; i++) if (pinned[i].start == start && pinned[i].registered) {
    pinned[i].start = 0;
    pinned[i].registered = 0;
    return depth ? 0 : NO_CONTEXT;
  }
  return INVALID;
}
int cuMemFreeHost(char *address) {
  for (int i = 0; i < PINNED; i++) if (pinned[i].start == address) {
    free(address);
    pinned[i].start = 0;
    return depth ? 0 : NO_CONTEXT;
  }
  return INVALID;
}
static int is_pinned(const char *start, size_t bytes) {
  for (int i = 0; i < PINNED; i++)
    if (pinned[i].start && start >= pinned[i].start && start + bytes <= pinned[i].start + pinned[i].bytes) return 1;
  return 0;
}
static int is_valid(int type, const char *host, const char *device, size_t pitch, const Copy *copy) {
  if (pitch < copy->width) return 0;
  size_t bytes = pitch * (copy->height - 1) + copy->width;
  return type == HOST ? is_pinned(host, bytes) : type == DEVICE && device != 0;
}
int cuMemcpy2DAsync_v2(const Copy *copy, size_t stream) {
  if (!depth) return NO_CONTEXT;
  if (!is_stream(stream) || queued == MOST || !copy->width || !copy->height) return INVALID;
  if (copy->fromX || copy->fromY || copy->toX || copy->toY) return INVALID;
  if (!is_valid(copy->fromType, copy->fromHost, copy->fromDevice, copy->fromPitch, copy)) return INVALID;
  if (!is_valid(copy->toType, copy->toHost, copy->toDevice, copy->toPitch, copy)) return INVALID;
  queue[queued] = (Work){.stream = stream, .copy = *copy};
  queued++;
  return 0;
}
int cuMemsetD8Async(char *start, unsigned char value, size_t bytes, size_t stream) {
  if (!depth) return NO_CONTEXT;
  if (!is_stream(stream) || queued == MOST || !start || value) return INVALID;
  queue[queued] = (Work){.stream = stream, .clear = {start, bytes}};
  queued++;
  return 0;
}
static void block_maxima(unsigned columns, unsigned rows, const Arguments a) {
  const float *logits = (const float *)a[0];
  float *statistics = (float *)a[1];
  uint64_t vocabulary = a[2], blocks = a[3];
  for (uint64_t row = 0; row < rows; row++) for (uint64_t block = 0; block < blocks && block < 8 * columns; block++) {
    float most = -INFINITY;
    for (uint64_t id = block * BLOCK; id < (block + 1) * BLOCK && id < vocabulary; id++) {
      float logit = logits[row * vocabulary + id];
      if (isnan(logit)) most = INFINITY;
      else if (logit > most) most = logit;
    }
    statistics[row * 4 * blocks + block] = most;
  }
}
static void block_sums(unsigned columns, unsigned rows, const Arguments a) {
  const float *logits = (const float *)a[0], *coldness = (const float *)a[4];
  float *statistics = (float *)a[1], *host = (float *)a[6];
  const int *whole = (const int *)a[5];
  uint64_t vocabulary = a[2], blocks = a[3];
  for (uint64_t row = 0; row < rows; row++) {
    float *own = statistics + row * 4 * blocks, highest = -INFINITY;
    for (uint64_t block = 0; block < blocks; block++) if (own[block] > highest) highest = own[block];
    for (uint64_t block = 0; block < blocks && block < 8 * columns; block++) {
      double sum = 0, cold = 0;
      int present = whole[row] || own[block] == highest;
      for (uint64_t id = block * BLOCK; id < (block + 1) * BLOCK && id < vocabulary; id++) {
        float logit = logits[row * vocabulary + id];
        sum += exp((double)logit - highest);
        cold += exp(((double)logit - highest) * coldness[row]);
        if (present) host[row * vocabulary + id] = logit;
      }
      own[blocks + block] = spoiled ? 2 * sum : sum;
      own[2 * blocks + block] = cold;
      ((int *)own)[3 * blocks + block] = present;
    }
  }
}
static void fetch_blocks(unsigned columns, unsigned rows, const Arguments a) {
  const float *logits = (const float *)a[0];
  float *host = (float *)a[1];
  const uint32_t *list = (const uint32_t *)a[2];
  uint64_t vocabulary = a[3];
  for (unsigned i = 0; i < columns; i++) {
    uint64_t row = list[i] >> 16, block = list[i] & 0xffff;
    for (uint64_t id = block * BLOCK; id < (block + 1) * BLOCK && id < vocabulary; id++)
      host[row * vocabulary + id] = logits[row * vocabulary + id];
  }
}
void draw_on_cpu(unsigned columns, const uint64_t *arguments);
void feed_on_cpu(unsigned columns, const uint64_t *arguments);
static void feed_tokens(unsigned columns, unsigned rows, const Arguments a) { feed_on_cpu(columns, a); }
static void draw_tokens(unsigned columns, unsigned rows, const Arguments a) { draw_on_cpu(columns, a); }
static const Kernel kernels[] = {
  {"block_maxima", 256, 4, block_maxima}, {"block_sums", 256, 7, block_sums}, {"fetch_blocks", 128, 4, fetch_blocks},
  {"draw_tokens", 1024, 6, draw_tokens}, {"feed_tokens", 32, 6, feed_tokens},
};
int cuModuleLoadData(size_t *module, const char *text) {
  if (!depth) return NO_CONTEXT;
  if (lacks()) return 2;
  if (refusal || !strstr(text, ".version")) return refusal ? refusal : 218;
  modules++;
  *module = 0x6000;
  return 0;
}
int cuModuleUnload(size_t module) { if (!depth || module != 0x6000) return INVALID; modules--; return 0; }
int cuModuleGetFunction(const Kernel **function, size_t module, const char *name) {
  for (int i = 0; i < 5; i++) if (module == 0x6000 && !strcmp(kernels[i].name, name)) {
    *function = kernels + i;
    return 0;
  }
  return 500;
}
int cuMemHostGetDevicePointer_v2(char **address, char *host, unsigned flags) {
  if (!depth || flags || !is_pinned(host, 1)) return INVALID;
  *address = host;
  return 0;
}
int cuLaunchKernel(
  const Kernel *kernel, unsigned columns, unsigned rows, unsigned layers, unsigned threads, unsigned y, unsigned z,
  unsigned shared, size_t stream, void **arguments, void **extra
) {
  if (!depth) return NO_CONTEXT;
  if (!is_stream(stream) || queued == MOST || !columns || !rows || layers != 1 || shared || extra) return INVALID;
  if (threads != kernel->threads || y != 1 || z != 1) return INVALID;
  Work *work = queue + queued++;
  *work = (Work){.stream = stream, .kernel = kernel};
  work->columns = columns;
  work->rows = rows;
  for (int i = 0; i < kernel->arguments; i++) work->arguments[i] = *(uint64_t *)arguments[i];
  return 0;
}
int cuEventRecord(size_t event, size_t stream) {
  if (!depth) return NO_CONTEXT;
  if (!is_stream(stream) || queued == MOST || event <= EVENTS) return INVALID;
  queue[queued++] = (Work){.stream = stream, .event = event};
  return 0;
}
int cuLaunchHostFunc(size_t stream, void (*function)(void *), void *data) {
  if (!is_stream(stream) || queued == MOST) return INVALID;
  queue[queued++] = (Work){.stream = stream, .function = function, .data = data};
  return 0;
}
int cuEventElapsedTime(float *milliseconds, size_t start, size_t end) {
  if (!depth) return NO_CONTEXT;
  for (int at = 0; at < queued; at++) if (queue[at].event && (queue[at].event == start || queue[at].event == end)) return 600;
  *milliseconds = 1;
  return 0;
}
static void execute(const Work *work) {
  if (work->function) work->function(work->data);
  else if (work->kernel) work->kernel->run(work->columns, work->rows, work->arguments);
  else if (work->clear.start) memset(work->clear.start, 0, work->clear.bytes);
  else if (!work->event) {
    const Copy *copy = &work->copy;
    const char *from = copy->fromType == HOST ? copy->fromHost : copy->fromDevice;
    char *to = copy->toType == HOST ? copy->toHost : copy->toDevice;
    for (size_t line = 0; line < copy->height; line++)
      memcpy(to + line * copy->toPitch, from + line * copy->fromPitch, copy->width);
  }
}
/** Runs the work of a stream, 0 = of all, up to an event, 0 = to the end. */
static void run_until(size_t stream, size_t event) {
  int kept = 0, isOver = 0;
  for (int at = 0; at < queued; at++) {
    if (isOver || (stream && queue[at].stream != stream)) queue[kept++] = queue[at];
    else {
      execute(queue + at);
      isOver = event && queue[at].event == event;
    }
  }
  queued = kept;
}
int cuEventSynchronize(size_t event) {
  if (!depth) return NO_CONTEXT;
  for (int at = queued - 1; at >= 0; at--) if (queue[at].event == event) {
    run_until(queue[at].stream, event);
    break;
  }
  return failure;
}
int cuStreamSynchronize(size_t stream) {
  if (!depth) return NO_CONTEXT;
  if (!is_stream(stream)) return INVALID;
  run_until(stream, 0);
  return failure;
}
