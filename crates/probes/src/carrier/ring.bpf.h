/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * One ring of records per processor that is online, in memory that user space has mapped (ring.rs reads it).
 * BPF_MAP_TYPE_RINGBUF takes a lock that all processors share. Here one atomic instruction on the
 * processor's own memory reserves a place.
 *
 * Needs Linux 5.12 (the atomic instruction).
 *
 * A record is complete when its `state` is set. The program writes `state` last. User space clears
 * a record before it gives the place back, so a free place is zero.
 */
#ifndef WAGGLE_RING_BPF_H
#define WAGGLE_RING_BPF_H

#include "target.bpf.h"

/* User space sets both sizes: `cfg.rings` entries, each a `struct ring` of `cfg.ring_bytes`. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct ring) + RING_SLACK + RING_BYTES_MIN);
} rings SEC(".maps");

/*
 * Another thread can only come in between within a few instructions: if it takes the processor from
 * this one, or runs on one that came online later and shares the ring. If that happens this often in
 * a row, the ring counts as full.
 */
#define RESERVE_TRIES 4

/* The ring of this processor (ring.rs chose their number). There is no division where no number is left out. */
static __always_inline struct ring *own_ring(void)
{
	u32 number = bpf_get_smp_processor_id();

	if (number >= cfg.rings)
		number %= cfg.rings;
	return bpf_map_lookup_elem(&rings, &number);
}

/*
 * A place for a record in the ring of this processor; NULL where it is full. The time of the record
 * must have been read before: the order of all rings rests on it (ring.rs).
 */
static __always_inline void *reserve(u32 kind, u64 size)
{
	struct ring *ring = own_ring();

	if (!ring)
		return NULL;
	size = (size + 7) & ~7ULL;
#pragma unroll
	for (u32 i = 0; i < RESERVE_TRIES; i++) {
		u64 at = *(volatile u64 *)&ring->reserved;
		/* Negative where user space began the ring anew since the line above. */
		if ((s64)(at + size - *(volatile u64 *)&ring->consumed) > (s64)cfg.ring_bytes)
			return NULL;
		if (__sync_val_compare_and_swap(&ring->reserved, at, at + size) != at)
			continue;
		/* Records may run over the end: there is slack behind it. */
		struct head *head = (struct head *)((u8 *)(ring + 1) + (at & (cfg.ring_bytes - 8)));
		head->kind = kind;
		head->size = size;
		return head;
	}
	return NULL;
}

/* The same for a record of a server, with whose it is and when; a full ring is counted as lost. */
static __always_inline void *reserve_of(struct target *target, u32 kind, u64 size, u64 now,
					enum lost_kind lost)
{
	struct head *head = reserve(kind, size);

	if (!head) {
		count_lost(target, lost, 1);
		return NULL;
	}
	head->tgid = target->tgid;
	head->program = cfg.program;
	head->end_ns = now;
	return head;
}

/*
 * Hands a record to user space. On x86-64 a store comes after those before it, so only the compiler
 * must keep the order; an exchange would wait until all of them are in the cache (70 ns). Another
 * architecture needs a store-release here.
 */
static __always_inline void submit(struct head *head)
{
	asm volatile("" ::: "memory");
	*(volatile u32 *)&head->state = RECORD_COMPLETE;
}

/* Gives a record up. */
static __always_inline void discard(struct head *head)
{
	head->kind = RECORD_NONE;
	submit(head);
}

#endif
