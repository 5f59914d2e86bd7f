/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a trial knows of the text of each statement, also where nothing is collected: its shape. All arms pay for it.
 */
#ifndef WAGGLE_TAP_SHAPE_BPF_H
#define WAGGLE_TAP_SHAPE_BPF_H

#include "session.bpf.h"
#include "../tap/times.bpf.h"

/*
 * 1 if `value` is below `limit`, else 0. A value from 2^31 on, as a difference that is negative, is not below. There is no
 * branch: the verifier would follow each.
 */
static __always_inline u32 is_below(u32 value, u32 limit)
{
	return (~value & (value - limit)) >> 31;
}

static __always_inline u32 is_same(u32 one, u32 other)
{
	return is_below(one ^ other, 1);
}

/* The same as `shape_of` in coin/shape.rs. */
static __always_inline u64 shape_of(const u8 *text, u32 length)
{
	u64 hash = 0;
	u32 quote = 0, escapes = 0, in_word = 0;

	for (u32 i = 0; i < SHAPE_BYTES && i < length; i++) {
		u32 byte = text[i];
		u32 is_letter = is_below((byte | 0x20) - 'a', 26) | is_same(byte, '_');
		u32 is_digit = is_below(byte - '0', 10);
		u32 is_quote = (is_same(byte, '\'') | is_same(byte, '"')) & ~escapes;
		u32 opens = is_quote & is_same(quote, 0), closes = is_quote & is_same(quote, byte);

		escapes = is_same(byte, '\\') & ~escapes;
		quote = (quote & (closes - 1)) | (byte & -opens);
		in_word = is_letter | (is_digit & in_word);
		u32 is_left_out = (is_same(quote, 0) ^ 1) | (is_digit & ~in_word);
		u64 kept = (u64)(is_left_out & 1) - 1;
		hash = hash * ((SHAPE_FACTOR & kept) | (~kept & 1)) + ((byte + 1) & kept);
	}
	return hash;
}

_Static_assert(SHAPE_BYTES >= STACK_SPAN_MAX, "the query span is read into the same bytes");

/*
 * Notes the shape of the statement whose reply is sent. Where the text is another one at a later send, the request has run several
 * statements, and none of their shapes is that of the request.
 */
static __always_inline void note_shape(struct coin *coin, bool is_first)
{
	u64 text, length;

	if (!is_first && !coin->shape)
		return;
	if (!cfg.has_text || bpf_probe_read_user(coin->text, cfg.query.length,
						 (void *)(coin->thd + cfg.query.offset))) {
		coin->shape = 0;
		return;
	}
	text_of(coin->text, &text, &length);
	bool is_same_text = coin->text_address == text && coin->text_length == length;
	coin->text_address = text;
	coin->text_length = length;
	if (!is_first && is_same_text)
		return;
	coin->shape = 0;
	length = at_most(length, SHAPE_BYTES);
	if (!is_first || !text || !length || bpf_probe_read_user(coin->text, length, (void *)text))
		return;
	coin->shape = shape_of(coin->text, length);
}

/* Counts a processor time by the shape of its statement, where there is room for it. */
static __noinline int count_of_shape(u64 hash, u32 arm, u64 ns)
{
	struct trial *trial = the_trial();

	if (!trial || !hash || arm >= ARMS_MAX)
		return 0;
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
	__sync_fetch_and_add(&trial->without_room, 1);
	return 0;
}

#endif
