/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What every program that reads a session of the server is made of. No per-CPU scratch is used,
 * since programs can be preempted on recent kernels: data goes from the server straight into the
 * ring record.
 */
#ifndef WAGGLE_SESSION_BPF_H
#define WAGGLE_SESSION_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "../tap/shared.h"

const volatile struct config cfg;

#include "ring.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct targets);
} targets SEC(".maps");

static __always_inline u32 current_tgid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

/* The target that the running thread belongs to; NULL where it belongs to none. */
static __always_inline struct target *current_target(void)
{
	u32 zero = 0, tgid = current_tgid();
	struct targets *all = bpf_map_lookup_elem(&targets, &zero);

	if (!all)
		return NULL;
#pragma unroll
	for (u32 i = 0; i < TARGET_TRIES; i++) {
		struct target *target = &all->target[(tgid + i) % TARGET_PLACES];
		if (target->tgid == tgid)
			return target;
	}
	return NULL;
}

static __always_inline void count_lost(struct target *target, enum lost_kind kind, u64 count)
{
	__sync_fetch_and_add(&target->lost[kind], count);
}

static __always_inline bool read_u64(u64 *value, u64 address)
{
	return bpf_probe_read_user(value, sizeof(*value), (void *)address) == 0;
}

/* The session that the running thread serves; 0 where there is none. */
static __always_inline bool current_session(u64 *thd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	u64 thread_pointer = task->thread.fsbase;

	if (!cfg.session_by_key)
		return read_u64(thd, thread_pointer + cfg.session_offset);

	u64 block;
	if (!read_u64(&block, thread_pointer + cfg.key_block))
		return false;
	if (!block) {
		*thd = 0;
		return true;
	}
	return read_u64(thd, block + cfg.key_slot);
}

/*
 * The smaller of two. The value stays in one register from the comparison to its use: verifiers
 * before 6.8 forget what they know of it when the compiler puts it on the stack in between.
 */
static __always_inline u64 at_most(u64 value, u64 limit)
{
	asm volatile("if %[value] <= %[limit] goto +1\n\t%[value] = %[limit]"
		     : [value] "+r"(value)
		     : [limit] "r"(limit));
	return value;
}

/* Copies a string of the security context; -1 where there is none. */
static __always_inline s32 read_context_string(u8 *to, u32 size, u64 context, u32 offset)
{
	u64 address = 0, length = 0;

	if (!read_u64(&address, context + offset) || !address)
		return -1;
	if (cfg.zero_ended_strings) {
		long copied = bpf_probe_read_user_str(to, size, (void *)address);
		return copied > 0 ? copied - 1 : -1;
	}
	if (!read_u64(&length, context + offset + 8))
		return -1;
	length = at_most(length, size);
	return bpf_probe_read_user(to, length, (void *)address) == 0 ? length : -1;
}

/* Tells user space who a session is; false where the ring is full. */
static __always_inline bool send_identity(struct target *target, u64 thd, u64 now,
					  const struct session *session)
{
	u64 context;
	struct identity *identity = reserve(RECORD_IDENTITY, sizeof(*identity));

	if (!identity) {
		count_lost(target, LOST_RING_FULL, 1);
		return false;
	}
	identity->head.tgid = target->tgid;
	identity->head.thd = thd;
	identity->head.end_ns = now;
	identity->id = session->id;
	identity->user_length = -1;
	identity->host_length = -1;
	identity->database_length = -1;
	if (cfg.has_context && read_u64(&context, thd + cfg.context) && context) {
		identity->user_length =
			read_context_string(identity->user, USER_MAX, context, cfg.user);
		identity->host_length =
			read_context_string(identity->host, HOST_MAX, context, cfg.host);
		if (identity->host_length <= 0)
			identity->host_length = read_context_string(identity->host, HOST_MAX,
								    context, cfg.address);
	}
	if (session->database) {
		u64 length = session->database_length;
		length = at_most(length, DATABASE_MAX);
		if (bpf_probe_read_user(identity->database, length, (void *)session->database) == 0)
			identity->database_length = length;
	}
	submit(&identity->head);
	return true;
}

/* A number in the data of a record; `at` is a constant of the layout. */
#define DATA(type, record, at) (*(type *)((record)->data + (at)))

static __always_inline void copy_stack_span(struct statement *record, const volatile struct span *span,
					    const u8 *bytes)
{
#pragma unroll
	for (u32 i = 0; i < STACK_SPAN_MAX / 8; i++)
		if (i * 8 < span->length)
			DATA(u64, record, span->at + i * 8) = *(u64 *)(bytes + i * 8);
}

static __always_inline bool read_spans(struct statement *record, u64 object, u32 count,
				       const volatile struct span *spans)
{
#pragma unroll
	for (u32 i = 0; i < SPANS_MAX; i++) {
		if (i < count &&
		    bpf_probe_read_user(record->data + spans[i].at, spans[i].length,
					(void *)(object + spans[i].offset)))
			return false;
	}
	return true;
}

static __always_inline void read_text(struct target *target, struct statement *record, u64 address,
				      u64 length)
{
	record->head.text_length = 0;
	record->head.text_unreadable = 0;
	if (!address || !length)
		return;
	length = at_most(length, cfg.text_limit);
	if (bpf_probe_read_user(record->data + cfg.data_length, length, (void *)address) == 0) {
		record->head.text_length = length;
		return;
	}
	record->head.text_unreadable = 1;
	count_lost(target, LOST_UNREADABLE_TEXT, 1);
}

/* A place for a record with its spans and as much of a text as is wanted. */
static __always_inline struct statement *reserve_statement(struct target *target, u32 kind,
							   u64 text_length)
{
	struct statement *record;

	text_length = at_most(text_length, cfg.text_limit);
	record = reserve(kind, sizeof(*record) + cfg.data_length + text_length);
	if (record) {
		record->head.tgid = target->tgid;
		record->head.program = cfg.program;
	} else {
		count_lost(target, LOST_RING_FULL, 1);
	}
	return record;
}

#endif
