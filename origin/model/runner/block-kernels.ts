import { BLOCK_SIZE } from '../sparse-logits.ts';

/** Threads of `block_maxima` and `block_sums`; each warp of 32 takes a block of logits. */
export const SUMMARY_THREADS = 256;
/** Blocks of logits that one of their thread blocks takes. */
export const SUMMARY_BLOCKS = SUMMARY_THREADS / 32;

/** Text for each of the four logits that a lane reads: those of ids 32 apart. */
const each = (text: (index: number) => string): string =>
  Array.from({ length: BLOCK_SIZE / 32 }, (_, index) => text(index)).join('\n');

/** Combines a number over all lanes of the warp. */
const reduce = (operation: string, register: string): string =>
  [16, 8, 4, 2, 1]
    .map(
      (distance) => `
  shfl.sync.bfly.b32 other, ${register}, ${distance}, 31, 0xffffffff;
  ${operation}.f32 ${register}, ${register}, other;`,
    )
    .join('');

/**
 * Reads a lane's logits to z0 … z3, −∞ beyond the row. Sets `in0` … `in3`, `offset` = 4 · (row · vocabulary +
 * id) and `lane`.
 */
const READ_LOGITS = `
  .reg .pred outside, is_first;
  .reg .u32 thread, lane, block, blocks, row, id, vocabulary, part;
  .reg .u64 logits, statistics, offset, address;
  .reg .f32 other;
  ld.param.u64 logits, [p_logits];
  ld.param.u64 statistics, [p_statistics];
  ld.param.u32 vocabulary, [p_vocabulary];
  ld.param.u32 blocks, [p_blocks];
  mov.u32 thread, %tid.x;
  mov.u32 block, %ctaid.x;
  mov.u32 row, %ctaid.y;
  shr.u32 part, thread, 5;
  mad.lo.u32 block, block, ${SUMMARY_BLOCKS}, part;
  setp.ge.u32 outside, block, blocks;
  @outside ret;
  and.b32 lane, thread, 31;
  setp.eq.u32 is_first, lane, 0;
  mad.lo.u32 id, block, ${BLOCK_SIZE}, lane;
  mad.lo.u32 part, row, vocabulary, id;
  mul.wide.u32 offset, part, 4;
  add.u64 address, logits, offset;
${each(
  (index) => `
  .reg .pred in${index};
  .reg .f32 z${index};
  add.u32 part, id, ${32 * index};
  setp.lt.u32 in${index}, part, vocabulary;
  mov.f32 z${index}, 0fFF800000;
  @in${index} ld.global.f32 z${index}, [address + ${128 * index}];`,
)}
  // The row's statistics begin at 16 * row * blocks; each kind takes 4 * blocks bytes.
  .reg .u64 maxima, own;
  mul.lo.u32 part, row, blocks;
  mul.wide.u32 maxima, part, 16;
  add.u64 maxima, statistics, maxima;
  mul.wide.u32 own, block, 4;
  add.u64 own, maxima, own;`;

/** Two kernels summarize rows of logits, one brings blocks to main memory. From compute capability 7.5. */
export const BLOCK_KERNELS = `
.version 6.4
.target sm_75
.address_size 64

.visible .entry block_maxima(
  .param .u64 p_logits, .param .u64 p_statistics, .param .u32 p_vocabulary, .param .u32 p_blocks
) {${READ_LOGITS}
  .reg .pred is_nan;
  .reg .f32 most;
  mov.f32 most, 0fFF800000;
${each(
  (index) => `
  setp.nan.f32 is_nan, z${index}, z${index};
  selp.f32 z${index}, 0f7F800000, z${index}, is_nan;
  max.f32 most, most, z${index};`,
)}
${reduce('max', 'most')}
  @is_first st.global.f32 [own], most;
  ret;
}

// After block_maxima. Writes blocks of the largest logit, and all blocks of rows that are to be whole, to
// main memory.
.visible .entry block_sums(
  .param .u64 p_logits, .param .u64 p_statistics, .param .u32 p_vocabulary, .param .u32 p_blocks,
  .param .u64 p_coldness, .param .u64 p_whole, .param .u64 p_host
) {${READ_LOGITS}
  .reg .pred more, is_best;
  .reg .f32 highest, coldness, sum, cold, x, y;
  .reg .u32 at, whole, present;
  .reg .u64 host, cursor, settings, stride;
  mov.f32 highest, 0fFF800000;
  mov.u32 at, lane;
  mul.wide.u32 cursor, lane, 4;
  add.u64 cursor, maxima, cursor;
HIGHEST:
  setp.lt.u32 more, at, blocks;
  @!more bra HIGHEST_END;
  ld.global.f32 other, [cursor];
  max.f32 highest, highest, other;
  add.u32 at, at, 32;
  add.u64 cursor, cursor, 128;
  bra HIGHEST;
HIGHEST_END:
  bar.warp.sync 0xffffffff;
${reduce('max', 'highest')}
  ld.param.u64 settings, [p_coldness];
  mul.wide.u32 cursor, row, 4;
  add.u64 settings, settings, cursor;
  ld.global.f32 coldness, [settings];
  ld.param.u64 settings, [p_whole];
  add.u64 settings, settings, cursor;
  ld.global.u32 whole, [settings];
  mov.f32 sum, 0f00000000;
  mov.f32 cold, 0f00000000;
${each(
  (index) => `
  sub.f32 x, z${index}, highest;
  mul.f32 x, x, 0f3FB8AA3B;
  mul.f32 y, x, coldness;
  ex2.approx.f32 x, x;
  ex2.approx.f32 y, y;
  add.f32 sum, sum, x;
  add.f32 cold, cold, y;`,
)}
${reduce('add', 'sum')}
${reduce('add', 'cold')}
  ld.global.f32 x, [own];
  setp.eq.f32 is_best, x, highest;
  selp.u32 present, 1, 0, is_best;
  or.b32 present, present, whole;
  setp.ne.u32 more, present, 0;
  ld.param.u64 host, [p_host];
  add.u64 host, host, offset;
  .reg .pred writes;
${each(
  (index) => `
  and.pred writes, more, in${index};
  @writes st.global.f32 [host + ${128 * index}], z${index};`,
)}
  mul.wide.u32 stride, blocks, 4;
  @!is_first ret;
  add.u64 own, own, stride;
  st.global.f32 [own], sum;
  add.u64 own, own, stride;
  st.global.f32 [own], cold;
  add.u64 own, own, stride;
  st.global.u32 [own], present;
  ret;
}

// A thread block of ${BLOCK_SIZE} for each entry of the list: row * 65536 + block.
.visible .entry fetch_blocks(
  .param .u64 p_logits, .param .u64 p_host, .param .u64 p_list, .param .u32 p_vocabulary
) {
  .reg .pred outside;
  .reg .u32 entry, row, id, vocabulary, thread;
  .reg .u64 logits, host, list, offset;
  .reg .f32 z;
  ld.param.u64 logits, [p_logits];
  ld.param.u64 host, [p_host];
  ld.param.u64 list, [p_list];
  ld.param.u32 vocabulary, [p_vocabulary];
  mov.u32 entry, %ctaid.x;
  mov.u32 thread, %tid.x;
  mul.wide.u32 offset, entry, 4;
  add.u64 list, list, offset;
  ld.global.u32 entry, [list];
  shr.u32 row, entry, 16;
  and.b32 id, entry, 0xffff;
  mad.lo.u32 id, id, ${BLOCK_SIZE}, thread;
  setp.ge.u32 outside, id, vocabulary;
  @outside ret;
  mad.lo.u32 id, row, vocabulary, id;
  mul.wide.u32 offset, id, 4;
  add.u64 logits, logits, offset;
  add.u64 host, host, offset;
  ld.global.f32 z, [logits];
  st.global.f32 [host], z;
  ret;
}
`;
