/*
 * draw-tokens.cu on the CPU: a thread block whose threads run one after the other, each up to the next
 * barrier, in another order after each. So a thread that reads what others write without a barrier is found.
 */
#include <math.h>
#include <stdint.h>
#include <ucontext.h>
#define THREADS 64
#define DEVICE static
#define SHARED_CODE static
#define KERNEL static void
#define SHARED static
#define SYNC() swapcontext(contexts + thread, &scheduler)
#define THREAD thread
#define ENTRY entry
#define ADD(address, value) add_to(address, value)
#define add_to(address, value) (*(address) += (value), *(address) - (value))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
static ucontext_t scheduler, contexts[THREADS];
static char stacks[THREADS][65536];
static int thread, entry, running[THREADS];

#include DRAW_TOKENS

static const uint64_t *given;
static void draw_thread(void) {
  draw_tokens(
    (float *)given[0], (const Request *)given[1], (Edit *)given[2], (const unsigned *)given[3], (Result *)given[4],
    given[5]
  );
  running[thread] = 0;
}
static void feed_thread(void) {
  feed_tokens(
    (const Request *)given[0], (const Result *)given[1], (long long *)given[2], (long long *)given[3],
    (int *)given[4], given[5]
  );
  running[thread] = 0;
}
static void run_on_cpu(unsigned columns, const uint64_t *arguments, void (*run_thread)(void)) {
  given = arguments;
  for (entry = 0; entry < (int)columns; entry++) {
    for (int i = 0; i < THREADS; i++) {
      getcontext(contexts + i);
      contexts[i].uc_stack.ss_sp = stacks[i];
      contexts[i].uc_stack.ss_size = sizeof stacks[i];
      contexts[i].uc_link = &scheduler;
      makecontext(contexts + i, run_thread, 0);
      running[i] = 1;
    }
    unsigned order = 1;
    for (int left = 1; left;) {
      left = 0;
      order = order * 1664525 + 1013904223;
      for (unsigned i = 0; i < THREADS; i++) {
        thread = (order >> 16) % THREADS ^ i;
        if (running[thread]) swapcontext(&scheduler, contexts + thread);
        left += running[thread];
      }
    }
  }
}
void draw_on_cpu(unsigned columns, const uint64_t *arguments) { run_on_cpu(columns, arguments, draw_thread); }
void feed_on_cpu(unsigned columns, const uint64_t *arguments) { run_on_cpu(columns, arguments, feed_thread); }
