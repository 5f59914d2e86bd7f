/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the text of a session's state says of its wait. The texts are those of `SHOW PROCESSLIST`, which the manuals
 * list and which have been the same since 5.5.
 */
#ifndef WAGGLE_WAITS_STAGE_BPF_H
#define WAGGLE_WAITS_STAGE_BPF_H

#include "../waits/frames.bpf.h"

#define WORD(a, b, c, d, e, f, g, h)                                                               \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 |             \
	 (u64)(f) << 40 | (u64)(g) << 48 | (u64)(h) << 56)

/* `Waiting for …`: by what follows. */
static __always_inline u32 part_of_waiting(u64 second, u64 third)
{
	u64 what = second >> 32 | third << 32;

	switch (what) {
	case WORD('t', 'a', 'b', 'l', 'e', ' ', 'l', 'e'): /* table level lock */
		return PART_TABLE_LOCK;
	case WORD('t', 'a', 'b', 'l', 'e', ' ', 'm', 'e'): /* table metadata lock */
	case WORD('t', 'a', 'b', 'l', 'e', ' ', 'f', 'l'): /* table flush */
	case WORD('s', 'c', 'h', 'e', 'm', 'a', ' ', 'm'): /* schema metadata lock */
	case WORD('s', 't', 'o', 'r', 'e', 'd', ' ', 'f'): /* stored function metadata lock */
	case WORD('s', 't', 'o', 'r', 'e', 'd', ' ', 'p'): /* stored procedure metadata lock */
	case WORD('t', 'r', 'i', 'g', 'g', 'e', 'r', ' '): /* trigger metadata lock */
	case WORD('e', 'v', 'e', 'n', 't', ' ', 'm', 'e'): /* event metadata lock */
	case WORD('g', 'l', 'o', 'b', 'a', 'l', ' ', 'r'): /* global read lock */
	case WORD('b', 'a', 'c', 'k', 'u', 'p', ' ', 'l'): /* backup lock */
	case WORD('c', 'o', 'm', 'm', 'i', 't', ' ', 'l'): /* commit lock */
	case WORD('t', 'a', 'b', 'l', 'e', 's', 'p', 'a'): /* tablespace metadata lock */
	case WORD('f', 'o', 'r', 'e', 'i', 'g', 'n', ' '): /* foreign key metadata lock */
	case WORD('c', 'h', 'e', 'c', 'k', ' ', 'c', 'o'): /* check constraint metadata lock */
		return PART_METADATA_LOCK;
	case WORD('p', 'r', 'i', 'o', 'r', ' ', 't', 'r'): /* prior transaction to commit */
		return PART_COMMIT;
	}
	return 0;
}

/* What the text of a state says; 0: nothing. A text that ends before is followed by others. */
static __always_inline u32 part_of_text(const u64 *text)
{
	switch (text[0]) {
	case WORD('U', 's', 'e', 'r', ' ', 's', 'l', 'e'):
		return PART_SLEEP;
	case WORD('U', 's', 'e', 'r', ' ', 'l', 'o', 'c'):
		return PART_USER_LOCK;
	case WORD('W', 'a', 'i', 't', 'i', 'n', 'g', ' '):
		return part_of_waiting(text[1], text[2]);
	case WORD('w', 'a', 'i', 't', 'i', 'n', 'g', ' '): /* waiting for handler commit */
	case WORD('q', 'u', 'e', 'r', 'y', ' ', 'e', 'n'): /* query end */
	case WORD('W', 'r', 'i', 't', 'i', 'n', 'g', ' '): /* Writing to binlog */
		return PART_COMMIT;
	}
	if ((text[0] | 0x20) << 8 == WORD(0, 'c', 'o', 'm', 'm', 'i', 't', 0))
		return PART_COMMIT;
	return 0;
}

/* What the state of a session of the running thread says; 0: nothing. */
static __always_inline u32 part_of_stage(u64 thd)
{
	u64 text[STATE_BYTES / 8] = {};
	u64 address = 0;

	if (!cfg.has_state || !thd || !read_memory(&address, sizeof(address), thd + cfg.state) ||
	    !address || !read_memory(text, sizeof(text), address))
		return 0;
	return part_of_text(text);
}

#endif
