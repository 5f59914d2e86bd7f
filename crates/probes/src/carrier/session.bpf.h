/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The parts of every program that reads a server session. Recent kernels can preempt programs, so
 * there is no per-CPU scratch memory: data goes straight from the server into the ring record.
 */
#ifndef WAGGLE_SESSION_BPF_H
#define WAGGLE_SESSION_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "ring.bpf.h"
#include "target.bpf.h"

/* A connection id that no session has. */
#define NOBODY (~0ULL)

/* By thread. Every probe keeps here what it keeps of a session. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct session);
} sessions SEC(".maps");

/* Whether a client's command runs a statement. */
static __always_inline bool runs_statement(u32 command)
{
#pragma unroll
	for (u32 i = 0; i < STATEMENTS_MAX; i++)
		if (cfg.statements[i] == command)
			return true;
	return false;
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

/* The statement whose first sends were seen is over, and no reply ended it. */
static __always_inline void count_unended(struct target *target, struct session *session)
{
	if (session->start && session->unended)
		count_lost(target, session->unended == LOST_X_PROTOCOL ? LOST_X_PROTOCOL
								     : LOST_NO_STATEMENT, 1);
	session->unended = 0;
}

/* What is kept of the session that the running thread serves; NULL where there is no memory. */
static __always_inline struct session *session_of(struct target *target, u64 thd)
{
	struct session *session = bpf_task_storage_get(&sessions, bpf_get_current_task_btf(), NULL,
						       BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!session) {
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
		return NULL;
	}
	if (session->thd != thd || session->turn != target->turn) {
		if (session->turn == target->turn)
			count_unended(target, session);
		session->thd = thd;
		session->turn = target->turn;
		session->id = NOBODY;
		session->start = 0;
		session->received_ns = 0;
		session->cached = 0;
		session->replied = 0;
		session->socket = 0;
	}
	return session;
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
static __always_inline bool send_identity(struct target *target, u64 thd, u64 now, u64 id,
					  u64 database, u64 database_length)
{
	u64 context;
	struct identity *identity =
		reserve_of(target, RECORD_IDENTITY, sizeof(*identity), now, LOST_RING_FULL);

	if (!identity)
		return false;
	identity->head.thd = thd;
	identity->id = id;
	identity->user_length = -1;
	identity->host_length = -1;
	identity->database_length = -1;
	if (cfg.has_context && read_u64(&context, thd + cfg.context) && context) {
		if (cfg.has_user)
			identity->user_length =
				read_context_string(identity->user, USER_MAX, context, cfg.user);
		if (cfg.has_host)
			identity->host_length =
				read_context_string(identity->host, HOST_MAX, context, cfg.host);
		if (cfg.has_address && identity->host_length <= 0)
			identity->host_length = read_context_string(identity->host, HOST_MAX,
								    context, cfg.address);
	}
	if (database) {
		u64 length = at_most(database_length, DATABASE_MAX);
		if (bpf_probe_read_user(identity->database, length, (void *)database) == 0)
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

/* Copies the name of the database that the spans of a record tell; its length, -1: none. */
static __always_inline s32 read_database(u8 *to, const struct statement *record)
{
	if (!cfg.has_database)
		return -1;
	u64 address = DATA(u64, record, cfg.at_database);
	u64 length = at_most(DATA(u64, record, cfg.at_database_length), DATABASE_MAX);
	return address && bpf_probe_read_user(to, length, (void *)address) == 0 ? (s32)length : -1;
}

/* What the query span says of the text; an address of 0 where the layout has none. */
static __always_inline void text_of(const u8 *query, u64 *address, u64 *length)
{
	*address = 0;
	*length = 0;
	if (!cfg.has_text)
		return;
	*address = *(u64 *)(query + (cfg.at_text - cfg.query.at));
	*length = *(u64 *)(query + (cfg.at_text_length - cfg.query.at));
}

/* What a record has for a text, in whole words. */
static __always_inline u64 text_room(u64 text_length)
{
	return (at_most(text_length, cfg.text_limit) + 7) & ~7ULL;
}

/* A place for a record with its spans, as much of a text as is wanted, and `more` bytes behind it. */
static __always_inline struct statement *reserve_statement(struct target *target, u32 kind,
							   u64 now, u64 text_length, u64 more)
{
	u64 size = sizeof(struct statement) + cfg.data_length + text_room(text_length) + more;

	return reserve_of(target, kind, size, now, LOST_RING_FULL);
}

#endif
