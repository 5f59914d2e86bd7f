/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a trial knows of the text of each statement, also where nothing is collected: its shape. All arms pay for it.
 */
#ifndef WAGGLE_TAP_SHAPE_BPF_H
#define WAGGLE_TAP_SHAPE_BPF_H

#include "session.bpf.h"
#include "../tap/times.bpf.h"

/* 1 if `value` is below `limit`, else 0; both are below 2^31. Without a branch: the verifier would follow each of them. */
static __always_inline u32 is_below(u32 value, u32 limit)
{
	return (~value & (value - limit)) >> 31;
}

/* The same as `shape_of` in coin/shape.rs. */
static __always_inline u64 shape_of(const u8 *text, u32 length)
{
	u64 hash = 0;
	u32 in_quotes = 0, in_word = 0;

	for (u32 i = 0; i < SHAPE_BYTES; i++) {
		u32 byte = text[i];
		u32 is_letter = is_below((byte | 0x20) - 'a', 26) | is_below(byte ^ '_', 1);
		u32 is_digit = is_below(byte - '0', 10);
		u32 is_quote = is_below(byte ^ '\'', 1) | is_below(byte ^ '"', 1);

		in_quotes ^= is_quote;
		in_word = is_letter | (is_digit & in_word);
		u32 is_left_out = in_quotes | (is_digit & ~in_word) | !is_below(i, length);
		u64 kept = (u64)(is_left_out & 1) - 1;
		hash = hash * ((SHAPE_FACTOR & kept) | (~kept & 1)) + ((byte + 1) & kept);
	}
	return hash;
}

/* Notes the shape of the statement whose reply is sent. */
static __always_inline void note_shape(struct coin *coin)
{
	u64 text, length;

	coin->shape = 0;
	if (!cfg.has_text || bpf_probe_read_user(coin->text, cfg.query.length,
						 (void *)(coin->thd + cfg.query.offset)))
		return;
	text_of(coin->text, &text, &length);
	length = at_most(length, SHAPE_BYTES);
	if (!text || !length || bpf_probe_read_user(coin->text, length, (void *)text))
		return;
	coin->shape = shape_of(coin->text, length);
}

/* Counts a processor time by the shape of its statement. Where there are too many of them, nothing. */
static __noinline int count_of_shape(u64 hash, u32 arm, u64 ns)
{
	if (!hash || arm >= ARMS_MAX)
		return 0;
#pragma unroll
	for (u32 i = 0; i < SHAPE_TRIES; i++) {
		u32 place = (hash + i) % SHAPES_MAX;
		struct shape *shape = bpf_map_lookup_elem(&shapes, &place);

		if (!shape)
			return 0;
		u64 owner = *(volatile u64 *)&shape->hash;
		if (!owner)
			owner = __sync_val_compare_and_swap(&shape->hash, 0, hash);
		if (owner && owner != hash)
			continue;
		add_time(&shape->processor[arm], ns);
		return 0;
	}
	return 0;
}

#endif
