/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The coin of a trial: tossed when the request of a statement is there, and accounted when the next one is.
 * All that is done here is done for every arm.
 */
#ifndef WAGGLE_TAP_TOSS_BPF_H
#define WAGGLE_TAP_TOSS_BPF_H

#include "parts.bpf.h"
#include "../tap/shape.bpf.h"

#define LATENCY_ROWS (ARMS_MAX * ARMS_MAX)

/*
 * Adds a time to one of the rows of the trial: the processor times, then the latencies. It is static: verifiers before
 * 6.8 look at every function that is not, also where there is no trial.
 */
static __noinline int count_time(u32 row, u64 ns)
{
	struct trial *trial = the_trial();

	if (!trial || row >= LATENCY_ROWS + ARMS_MAX)
		return 0;
	add_time(row < LATENCY_ROWS ? &trial->processor[row] : &trial->latency[row - LATENCY_ROWS], ns);
	return 0;
}

/* The statement before the request that is there now, which used the processor for so long. */
static __always_inline void account(struct trial *trial, const struct coin *coin, u64 used_ns)
{
	if (cfg.injects && coin->arm < ARMS_MAX)
		__sync_fetch_and_add(&trial->injected_ns[coin->arm], coin->injected_ns);
	count_time(LATENCY_ROWS + coin->arm, coin->sent_ns - coin->begun_ns);
	/* It ran in more than one window. */
	if (coin->window != trial->window)
		return;
	if (coin->arm_before >= ARMS_MAX || (s64)used_ns <= 0)
		return;
	count_time(coin->arm_before * ARMS_MAX + coin->arm, used_ns);
	if (cfg.has_shapes)
		count_of_shape(coin->shape, coin->arm, used_ns);
}

static __always_inline void toss(struct trial *trial, struct coin *coin, bool is_answered)
{
	u32 random = bpf_get_prandom_u32();
	u32 window = trial->window;
	u32 arm = trial->chosen;

	if (arm >= ARMS_MAX) {
		arm = 0;
#pragma unroll
		for (u32 i = 1; i < ARMS_MAX; i++)
			arm += random >= trial->from[i];
	}
	if (arm >= ARMS_MAX)
		return;
	coin->arm_before = is_answered ? coin->arm : ARMS_MAX;
	coin->arm = arm;
	coin->window = window;
	__sync_fetch_and_add(&trial->requests[arm], 1);
	coin->collectors = trial->collectors[arm];
}

/* What the statement before left undone is not that of the next. */
static __always_inline void begin_collecting(struct target *target, struct session *session,
					     u32 before, u32 now)
{
	struct parts *parts = &session->parts;

	if (!(now & COLLECT_STATEMENTS)) {
		count_unended(target, session);
		session->start = 0;
	}
	read_usage(parts->next.usage, bpf_get_current_task_btf());
	if (!(before & COLLECT_WAITS)) {
		parts->left = 0;
		parts->replied_ns = 0;
		parts->next.queue_ns = 0;
		parts->next.after_reply_ns = 0;
	}
}

/*
 * Whether what was received is no request of a client: more of one that is there, or an answer of another server that the
 * statement asks.
 */
static __always_inline bool is_no_request(const struct coin *coin, const struct session *session,
					  u64 thd, u64 socket, u64 id)
{
	bool is_known = session && session->thd == thd && session->socket &&
			session->socket_id == id;

	if (is_known && session->socket != socket)
		return true;
	if (!coin->begun_ns || coin->thd != thd || coin->id != id)
		return false;
	return coin->socket == socket ? !coin->sent_ns : !is_known;
}

/* A session has received something by the running thread. The first of it after a reply is a request. */
static __always_inline void on_request(struct target *target, u64 thd, const struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct coin *coin = bpf_task_storage_get(&coins, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct session *session = bpf_task_storage_get(&sessions, task, NULL, 0);
	struct trial *trial = the_trial();
	u64 socket = (u64)sk;
	u32 id = 0;

	if (!coin || !trial || trial->is_over)
		return;
	if (cfg.has_id && bpf_probe_read_user(&id, sizeof(id), (void *)(thd + cfg.id)))
		return;
	if (is_no_request(coin, session, thd, socket, id))
		return;
	/* Another program may interrupt this one and add to it: what it adds later is of the next statement. */
	u64 off_ns = *(volatile u64 *)&coin->off_ns;
	u64 now = bpf_ktime_get_ns();
	u32 before = coin->collectors;
	/* What was sent by the same socket may have been the greeting of the next connection. */
	bool is_next = coin->id != id && (coin->thd == thd || coin->socket == socket);
	bool is_answered = coin->begun_ns && coin->sent_ns && !is_next;
	if (is_answered)
		account(trial, coin, now - coin->begun_ns - off_ns);
	toss(trial, coin, is_answered);
	if (session)
		begin_collecting(target, session, before, coin->collectors);
	coin->thd = thd;
	coin->socket = socket;
	coin->id = id;
	coin->begun_ns = now;
	coin->off_ns -= off_ns;
	coin->left_ns = 0;
	coin->sent_ns = 0;
	coin->injected_ns = 0;
}

/* The longest time that is injected has fewer. */
#define TURNS_MAX 8192

struct idling {
	u64 until_ns;
	u64 now_ns;
};

static long idle(u32 turn, struct idling *idling)
{
	idling->now_ns = bpf_ktime_get_ns();
	return idling->now_ns >= idling->until_ns;
}

static __always_inline void inject(struct coin *coin, u64 ns)
{
	u64 begun = bpf_ktime_get_ns();
	struct idling idling = { .until_ns = begun + ns, .now_ns = begun };

	bpf_loop(TURNS_MAX, idle, &idling, 0);
	coin->injected_ns = idling.now_ns - begun;
}

/* The running thread has sent something: what is collected of its statement. */
static __always_inline u32 on_send_in_trial(const struct sock *socket, s64 result)
{
	struct trial *trial = the_trial();

	if (!trial || trial->is_over)
		return 0;
	struct coin *coin = bpf_task_storage_get(&coins, bpf_get_current_task_btf(), NULL, 0);
	if (!coin || !coin->begun_ns)
		return COLLECT_ALL;
	if (result <= 0 || coin->socket != (u64)socket)
		return coin->collectors;
	bool is_first = !coin->sent_ns;
	coin->sent_ns = bpf_ktime_get_ns();
	if (cfg.has_shapes)
		note_shape(coin, is_first);
	/* Both arms do the same, for another time. */
	if (cfg.injects && is_first)
		inject(coin, coin->collectors & COLLECT_INJECTED ? trial->inject_ns : 0);
	return coin->collectors;
}

#endif
