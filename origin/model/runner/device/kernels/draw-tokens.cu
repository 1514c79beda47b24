// Draws tokens from rows of logits: edits, mask, temperature, top-k, top-p, min-p, as origin/sampling does on
// the CPU. One thread block per row. Tests compile this file for the CPU, with the macros defined elsewhere.
// draw-tokens.ptx is compiled from it: test/tools/gpu/compile-kernels.ts.

#ifndef THREADS
#define THREADS 1024
#define DEVICE static __device__
/** Called from several places: keeps the file small. */
#define SHARED_CODE static __device__ __noinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define SHARED __shared__
#define SYNC() __syncthreads()
#define THREAD ((int)threadIdx.x)
#define ENTRY ((int)blockIdx.x)
#define ADD(address, value) atomicAdd(address, value)
#define INFINITY __int_as_float(0x7f800000)
#endif

#define LANES 32
#define GROUPS (THREADS / LANES)
/** Most logits that are sorted. */
#define MOST 2048
#define BINS 1024
/** Nats below the largest logit that bins cover; all tokens below weigh less than top-p can tell apart. */
#define NATS 30.0
/** How often a bin is divided. */
#define LEVELS 3
/** A weight of 1 in the sums of bins. Sums of integers do not depend on their order. */
#define UNIT 1099511627776.0f
#define MOST_LISTED 20
#define NO_ID 0x7fffffff

typedef unsigned long long u64;

typedef struct {
  double uniform, coldness;
  /** Of top-p, from 1 on = none; of the largest weight, 0 = none. */
  double share, ratio;
  int row;
  /** 0 = none */
  int top_k, min_keep, greedy;
  int first_edit, edits;
  /** Index of its mask, and how many of the most likely tokens to list; −1 = none. */
  int mask, listed;
} Request;

/** As EDIT_AMOUNTS of device-draws.ts has it. */
typedef struct {
  double bias, penalty, minus, at_least_finite;
  int id, forbidden;
  float saved;
  int unused;
} Edit;

typedef struct {
  /** 0 = the host must draw. */
  int drawn;
  int token, listed;
  float logit, highest;
  int unused;
  /** Of e^(z - highest) over the row without edits and mask. */
  double sum;
  int ids[MOST_LISTED];
  float logits[MOST_LISTED];
} Result;

typedef struct {
  const float *logits;
  const unsigned *mask;
  int size;
} Row;

/** Which tokens may be drawn: those above the last one that is kept, in order of logits, then ids. */
typedef struct {
  float highest, coldness, lowest;
  int last_id;
  float ratio;
} Weighing;

SHARED float largest[THREADS];
SHARED float keys[MOST];
SHARED int key_ids[MOST];
SHARED double parts[THREADS];
SHARED double group_sums[GROUPS];
SHARED u64 masses[BINS];
SHARED unsigned counts[BINS];
SHARED struct {
  int invalid, best, listed, group, bins[LEVELS], level, failed, token;
  /** Tokens in the bin that was chosen last. */
  unsigned chosen;
  float highest;
  double before, weight, total;
} common;

DEVICE float logit_at(Row row, int id) {
  if (row.mask != 0 && !(row.mask[id >> 5] >> (id & 31) & 1)) return -INFINITY;
  return row.logits[id];
}

DEVICE int comes_first(float logit, int id, float other, int other_id, int by_id) {
  if (by_id) return id < other_id;
  return logit > other || (logit == other && id < other_id);
}

/** Sorts a power of two of keys by logit, largest first, then by id; or by id alone. */
SHARED_CODE void sort_keys(int count, int by_id) {
  for (int size = 2; size <= count; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      for (int pair = THREAD; pair < count / 2; pair += THREADS) {
        int low = 2 * pair - (pair & (distance - 1)), high = low + distance;
        int ascends = (low & size) == 0;
        if (comes_first(keys[high], key_ids[high], keys[low], key_ids[low], by_id) == ascends) {
          float key = keys[low];
          int id = key_ids[low];
          keys[low] = keys[high];
          key_ids[low] = key_ids[high];
          keys[high] = key;
          key_ids[high] = id;
        }
      }
      SYNC();
    }
  }
}

/** Finds the largest logit of the row and of each thread's part of it. */
SHARED_CODE void find_largest(Row row) {
  float most = -INFINITY;
  int best = NO_ID, invalid = 0;
  if (THREAD == 0) common.invalid = 0;
  SYNC();
#pragma unroll 4
  for (int id = THREAD; id < row.size; id += THREADS) {
    float logit = logit_at(row, id);
    if (!(logit < INFINITY)) invalid = 1;
    if (logit > most) {
      most = logit;
      best = id;
    }
  }
  if (invalid) common.invalid = 1;
  largest[THREAD] = keys[THREAD] = most;
  key_ids[THREAD] = best;
  SYNC();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    int other = THREAD + half;
    if (THREAD < half && comes_first(keys[other], key_ids[other], keys[THREAD], key_ids[THREAD], 0)) {
      keys[THREAD] = keys[other];
      key_ids[THREAD] = key_ids[other];
    }
    SYNC();
  }
  if (THREAD == 0) {
    common.highest = keys[0];
    common.best = key_ids[0];
  }
  SYNC();
}

/** Fills the keys up to a power of two, and sorts them. */
SHARED_CODE void sort_listed(int by_id) {
  int listed = common.listed, count = 1;
  while (count < listed) count *= 2;
  for (int at = listed + THREAD; at < count; at += THREADS) {
    keys[at] = -INFINITY;
    key_ids[at] = NO_ID;
  }
  SYNC();
  sort_keys(count, by_id);
}

/** Lists the `count` largest logits, best first. Returns 0 if that cannot be done here. */
SHARED_CODE int list_top(Row row, int count) {
  if (count > THREADS) return 0;
  keys[THREAD] = largest[THREAD];
  key_ids[THREAD] = THREAD;
  SYNC();
  sort_keys(THREADS, 0);
  // At least `count` logits reach it.
  float cut = keys[count - 1];
  SYNC();
  if (THREAD == 0) common.listed = 0;
  SYNC();
#pragma unroll 4
  for (int id = THREAD; id < row.size; id += THREADS) {
    float logit = logit_at(row, id);
    if (!(logit >= cut) || logit == -INFINITY) continue;
    int at = ADD(&common.listed, 1);
    if (at >= MOST) continue;
    keys[at] = logit;
    key_ids[at] = id;
  }
  SYNC();
  if (common.listed > MOST) return 0;
  sort_listed(0);
  if (THREAD == 0 && common.listed > count) common.listed = count;
  SYNC();
  return 1;
}

DEVICE float weight_of(float logit, Weighing by) {
  return expf((logit - by.highest) * by.coldness);
}

DEVICE float kept_weight(Row row, int id, Weighing by) {
  float logit = logit_at(row, id);
  if (logit < by.lowest || (logit == by.lowest && id > by.last_id)) return 0;
  float weight = weight_of(logit, by);
  return weight >= by.ratio ? weight : 0;
}

/** Adds the parts of each group. Thread 0 gets the sum of all. */
SHARED_CODE double add_groups(void) {
  double total = 0;
  SYNC();
  if (THREAD < GROUPS) {
    double sum = 0;
#pragma unroll 4
    for (int lane = 0; lane < LANES; lane++) sum += parts[THREAD * LANES + lane];
    group_sums[THREAD] = sum;
  }
  SYNC();
#pragma unroll 4
  for (int group = 0; THREAD == 0 && group < GROUPS; group++) total += group_sums[group];
  return total;
}

/** Returns the first of some sums that exceeds the target together with those before it, which it subtracts. */
SHARED_CODE int find_sum(const double *sums, int count, double *target) {
  int found = NO_ID;
  for (int at = 0; at < count; at++) {
    if (sums[at] <= 0) continue;
    // Rounding may leave none that exceeds it; then the last one is right.
    if (found != NO_ID) *target -= sums[found];
    found = at;
    if (sums[at] > *target) break;
  }
  return found == NO_ID ? 0 : found;
}

/** Draws from the kept tokens of the row by the inverse CDF in ascending order of ids. */
DEVICE void draw_from_row(Row row, Weighing by, double uniform) {
  int segment = (row.size + GROUPS - 1) / GROUPS;
  int start = THREAD / LANES * segment, end = min(start + segment, row.size);
  float sum = 0;
#pragma unroll 4
  for (int id = start + THREAD % LANES; id < end; id += LANES) sum += kept_weight(row, id, by);
  parts[THREAD] = sum;
  double total = add_groups();
  if (THREAD == 0) {
    double rest = uniform * total;
    common.group = find_sum(group_sums, GROUPS, &rest);
    common.before = rest;
    common.weight = group_sums[common.group];
  }
  SYNC();
  start = common.group * segment;
  end = min(start + segment, row.size);
  int piece = (segment + THREADS - 1) / THREADS;
  double own = 0;
#pragma unroll 1
  for (int at = 0; at < piece; at++) {
    int id = start + THREAD * piece + at;
    if (id < end) own += kept_weight(row, id, by);
  }
  parts[THREAD] = own;
  double exact = add_groups();
  if (THREAD == 0) {
    double rest = common.before / common.weight * exact;
    int group = find_sum(group_sums, GROUPS, &rest);
    int lane = find_sum(parts + group * LANES, LANES, &rest);
    double reached = 0;
    int first = start + (group * LANES + lane) * piece;
    common.token = NO_ID;
    for (int id = first; id < first + piece && id < end && (reached <= rest || common.token == NO_ID); id++) {
      float weight = kept_weight(row, id, by);
      if (weight == 0) continue;
      reached += weight;
      common.token = id;
    }
  }
  SYNC();
}

/** Applies top-p and min-p to the list, and draws from what is left. */
DEVICE void draw_from_list(Request request, Weighing by) {
  if (THREAD < common.listed) parts[THREAD] = weight_of(keys[THREAD], by);
  SYNC();
  if (THREAD == 0) {
    int kept = common.listed, reaching = 0;
    double total = 0, prefix = 0;
#pragma unroll 4
    for (int at = 0; at < kept; at++) total += parts[at];
    if (request.share < 1) {
      int at = 0;
      while (at < kept && (at < max(1, request.min_keep) || prefix < request.share * total)) prefix += parts[at++];
      kept = at;
    }
    while (reaching < kept && parts[reaching] >= request.ratio) reaching++;
    if (request.ratio > 0) kept = reaching < request.min_keep ? min(kept, request.min_keep) : reaching;
    common.listed = kept;
  }
  SYNC();
  sort_listed(1);
  if (THREAD < common.listed) parts[THREAD] = weight_of(keys[THREAD], by);
  SYNC();
  if (THREAD == 0) {
    double total = 0;
#pragma unroll 4
    for (int at = 0; at < common.listed; at++) total += parts[at];
    double rest = request.uniform * total;
    common.token = key_ids[common.listed == 1 ? 0 : find_sum(parts, common.listed, &rest)];
  }
  SYNC();
}

/** The bin of a logit at a level, if it is in the chosen bins of the levels above it; else −1. */
DEVICE int bin_of(float logit, Weighing by, int level) {
  double depth = ((double)by.highest - logit) * by.coldness * ((BINS - 1) / NATS);
  int bin = depth < BINS - 1 ? (int)depth : BINS - 1;
#pragma unroll 1
  for (int above = 0; above < level; above++) {
    if (bin != common.bins[above]) return -1;
    depth = (depth - bin) * BINS;
    bin = (int)depth;
  }
  return bin;
}

/** Adds the weights in each bin of a level. */
DEVICE void fill_bins(Row row, Weighing by, int level) {
#pragma unroll 1
  for (int bin = THREAD; bin < BINS; bin += THREADS) {
    masses[bin] = 0;
    counts[bin] = 0;
  }
  SYNC();
  u64 tail = 0;
  unsigned tail_count = 0;
#pragma unroll 4
  for (int id = THREAD; id < row.size; id += THREADS) {
    float logit = logit_at(row, id);
    int bin = logit == -INFINITY ? -1 : bin_of(logit, by, level);
    if (bin < 0) continue;
    u64 weight = (u64)(weight_of(logit, by) * UNIT);
    // Most logits of a peaked row are in the last bin, where they would wait for each other.
    if (bin == BINS - 1) {
      tail += weight;
      tail_count++;
    } else {
      ADD(&masses[bin], weight);
      ADD(&counts[bin], 1u);
    }
  }
  if (tail_count > 0) {
    ADD(&masses[BINS - 1], tail);
    ADD(&counts[BINS - 1], tail_count);
  }
  SYNC();
}

/** Chooses the bin in which the kept weight ends. */
DEVICE void choose_bin(double share, int level) {
  if (THREAD != 0) return;
  double total = 0;
#pragma unroll 4
  for (int bin = 0; bin < BINS; bin++) total += (double)masses[bin];
  if (level == 0) {
    common.total = share * total;
    common.before = 0;
  }
  int last = 0;
#pragma unroll 1
  for (int bin = 0; bin < BINS; bin++) {
    if (counts[bin] == 0) continue;
    last = bin;
    if (common.before + (double)masses[bin] >= common.total) break;
    common.before += (double)masses[bin];
  }
  common.bins[level] = last;
  common.level = level + 1;
  common.chosen = counts[last];
  common.failed = level == 0 && last == BINS - 1;
}

/** Finds the last token that top-p keeps. Returns 0 if that cannot be done here. */
DEVICE int find_nucleus(Row row, double share, Weighing *by) {
#pragma unroll 1
  for (int level = 0;; level++) {
    if (level == LEVELS) return 0;
    fill_bins(row, *by, level);
    choose_bin(share, level);
    SYNC();
    if (common.failed) return 0;
    // Not from `counts`, which a faster thread may already clear for the next level.
    if (common.chosen <= MOST) break;
  }
  if (THREAD == 0) common.listed = 0;
  SYNC();
  int level = common.level;
#pragma unroll 4
  for (int id = THREAD; id < row.size; id += THREADS) {
    float logit = logit_at(row, id);
    if (logit == -INFINITY || bin_of(logit, *by, level - 1) != common.bins[level - 1]) continue;
    int at = ADD(&common.listed, 1);
    keys[at] = logit;
    key_ids[at] = id;
  }
  SYNC();
  sort_listed(0);
  if (THREAD == 0) {
    int kept = 0;
    double reached = common.before;
    while (kept < common.listed && (kept == 0 || reached < common.total))
      reached += (double)(u64)(weight_of(keys[kept++], *by) * UNIT);
    common.listed = kept;
  }
  SYNC();
  by->lowest = keys[common.listed - 1];
  by->last_id = key_ids[common.listed - 1];
  SYNC();
  return 1;
}

/** Draws with the parameters of a request. Returns 0 if that cannot be done here. */
DEVICE int draw(Row row, Request request) {
  Weighing by = {common.highest, (float)request.coldness, -INFINITY, NO_ID, (float)request.ratio};
  if (common.invalid || common.highest == -INFINITY) return 0;
  if (request.greedy) {
    if (THREAD == 0) common.token = common.best;
    SYNC();
    return 1;
  }
  if (request.top_k > 0) {
    if (!list_top(row, min(max(request.top_k, request.min_keep), row.size))) return 0;
    draw_from_list(request, by);
    return 1;
  }
  if (request.share < 1 && !find_nucleus(row, request.share, &by)) return 0;
  draw_from_row(row, by, request.uniform);
  return 1;
}

/** Writes the sum and the list from which the host computes logprobs. Returns 0 if that cannot be done. */
DEVICE int score(Row row, int listed, Result *result) {
  float sum = 0, highest = common.highest;
  if (common.invalid || highest == -INFINITY) return 0;
#pragma unroll 4
  for (int id = THREAD; id < row.size; id += THREADS) sum += expf(row.logits[id] - highest);
  parts[THREAD] = sum;
  double total = add_groups();
  if (THREAD == 0) {
    result->sum = total;
    result->highest = highest;
    result->listed = 0;
  }
  SYNC();
  if (listed == 0) return 1;
  if (!list_top(row, min(listed, row.size))) return 0;
  if (THREAD < common.listed) {
    result->ids[THREAD] = key_ids[THREAD];
    result->logits[THREAD] = keys[THREAD];
  }
  if (THREAD == 0) result->listed = common.listed;
  SYNC();
  return 1;
}

DEVICE float edited(Edit edit) {
  if (edit.forbidden) return -INFINITY;
  const double most = 3.4028234663852886e38;
  float logit = edit.saved;
  logit = (float)(logit + edit.bias);
  if (edit.penalty != 1) logit = (float)(logit > 0 ? fmin(logit / edit.penalty, most) : logit * edit.penalty);
  logit = (float)(logit - edit.minus);
  return logit >= -most ? (float)fmax(logit - edit.at_least_finite, -most) : logit;
}

/** Draws a token of each request. The logits are the same afterwards. */
KERNEL draw_tokens(
  float *logits, const Request *requests, Edit *edits, const unsigned *masks, Result *results, unsigned vocabulary
) {
  Request request = requests[ENTRY];
  Edit *own = edits + request.first_edit;
  Result *result = results + ENTRY;
  float *values = logits + (u64)request.row * vocabulary;
  unsigned words = (vocabulary + 31) / 32;
  Row row = {values, 0, (int)vocabulary};
  int done = 1, changed = request.edits > 0 || request.mask >= 0;
  if (request.listed >= 0 || !changed) find_largest(row);
  if (request.listed >= 0) done = score(row, request.listed, result);
#pragma unroll 1
  for (int at = THREAD; at < request.edits; at += THREADS) {
    own[at].saved = values[own[at].id];
    values[own[at].id] = edited(own[at]);
  }
  SYNC();
  if (request.mask >= 0) row.mask = masks + (u64)request.mask * words;
  if (changed) find_largest(row);
  done = done && draw(row, request);
  SYNC();
#pragma unroll 1
  for (int at = THREAD; at < request.edits; at += THREADS) values[own[at].id] = own[at].saved;
  SYNC();
  if (THREAD != 0) return;
  result->drawn = done;
  if (!done) return;
  result->token = common.token;
  result->logit = values[common.token];
}

/** Writes the drawn tokens and their positions to the inputs of the next run. One block per request. */
KERNEL feed_tokens(
  const Request *requests, const Result *results, long long *tokens, long long *positions,
  int *last_positions, unsigned length
) {
  if (THREAD != 0) return;
  int row = requests[ENTRY].row;
  const Result *result = results + ENTRY;
  tokens[row] = result->drawn ? result->token : 0;
  // At the end of the context there is no next position.
  if (last_positions[row] + 1 < (int)length) last_positions[row]++;
  positions[row] = last_positions[row];
}
