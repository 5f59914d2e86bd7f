/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The end of a server by a signal: who sent it, and what each session runs when the signal reaches its thread. Its memory
 * is still there then.
 */
#include "session.bpf.h"
#include "../death/shared.h"

char LICENSE[] SEC("license") = "GPL";

/* The skeleton generates a Rust type for what it sees in a section. */
struct fatal _fatal = {};
struct dying _dying = {};

#define SIGILL 4
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGSEGV 11
#define SIGSYS 31

/* Who is no process sends it without a description (include/linux/sched/signal.h): SEND_SIG_NOINFO, SEND_SIG_PRIV. */
#define OF_PROCESS 0UL
#define OF_KERNEL 1UL

/* How a process describes what it sends (include/uapi/asm-generic/siginfo.h). */
#define SI_USER 0
#define SI_QUEUE (-1)
#define SI_TKILL (-6)

#define COM_SLEEP 0

struct kernel_siginfo {
	int si_code;
} __attribute__((preserve_access_index));

static __always_inline bool is_fatal(int signal)
{
	return signal == SIGILL || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE ||
	       signal == SIGKILL || signal == SIGSEGV || signal == SIGSYS;
}

/* Whether no process asked for the signal: the kernel sends what a thread brought about, and ends who takes its memory. */
static __always_inline bool is_of_kernel(const struct kernel_siginfo *info)
{
	u64 address = (u64)info;

	if (address == OF_PROCESS || address == OF_KERNEL)
		return address == OF_KERNEL;
	int code = BPF_CORE_READ(info, si_code);
	return code != SI_USER && code != SI_QUEUE && code != SI_TKILL;
}

/* In the thread that sends it. */
SEC("tp_btf/signal_generate")
int BPF_PROG(on_sent, int signal, struct kernel_siginfo *info, struct task_struct *task)
{
	struct target *target = is_fatal(signal) ? target_of(BPF_CORE_READ(task, tgid)) : NULL;
	u64 thd = 0;
	u32 id = 0;

	if (!target || target->program != cfg.program)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct fatal *fatal =
		reserve_of(target, RECORD_FATAL, sizeof(*fatal), now, LOST_RING_FULL);

	if (!fatal)
		return 0;
	fatal->signal = signal;
	fatal->sender = current_tgid();
	fatal->of_kernel = is_of_kernel(info);
	bpf_get_current_comm(fatal->sender_name, sizeof(fatal->sender_name));
	if (fatal->sender == target->tgid && current_session(&thd) && thd && cfg.has_id &&
	    bpf_probe_read_user(&id, sizeof(id), (void *)(thd + cfg.id)) == 0) {
		fatal->head.thd = thd;
		fatal->id = id;
	}
	submit(&fatal->head);
	return 0;
}

/* What the session of this thread runs; false where it could not be told. */
static __always_inline bool tell_session(struct target *target, u64 thd)
{
	u8 query[STACK_SPAN_MAX] __attribute__((aligned(8)));
	struct dying *dying;
	u64 text, length;
	u32 id = 0;

	if ((cfg.has_text &&
	     bpf_probe_read_user(query, cfg.query.length, (void *)(thd + cfg.query.offset))) ||
	    (cfg.has_id && bpf_probe_read_user(&id, sizeof(id), (void *)(thd + cfg.id)))) {
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
		return false;
	}
	text_of(query, &text, &length);
	if (!send_identity(target, thd, bpf_ktime_get_ns(), id, 0, 0))
		return false;
	/* Later than that of the identity, which may lie in another ring. */
	u64 now = bpf_ktime_get_ns();
	struct statement *record = reserve_statement(target, RECORD_DYING, now, length, 0);

	if (!record)
		return false;
	record->head.thd = thd;
	copy_stack_span(record, &cfg.query, query);
	if (!read_spans(record, thd, cfg.session_spans, cfg.session)) {
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
		discard(&record->head);
		return false;
	}
	dying = (struct dying *)(record->data + cfg.data_length - sizeof(*dying));
	dying->database_length = read_database(dying->database, record);
	read_text(target, record, text, length);
	submit(&record->head);
	return true;
}

/* The main thread of a server that ends: a session tells by itself what it runs. */
static __always_inline void tell_end(struct target *target)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 now = bpf_ktime_get_ns();
	struct head *head =
		reserve_of(target, RECORD_DYING, sizeof(*head), now, LOST_RING_FULL);

	if (!head)
		return;
	head->result = BPF_CORE_READ(task, signal, group_exit_code);
	submit(head);
}

/*
 * In each thread that it reaches. The kernel ends all threads of a process by a SIGKILL for each, whatever the signal was
 * that ended the first one.
 */
SEC("tp_btf/signal_deliver")
int BPF_PROG(on_taken, int signal)
{
	struct target *target = is_fatal(signal) ? served_target() : NULL;
	u64 thread = bpf_get_current_pid_tgid(), thd = 0;
	u32 command;

	if (!target)
		return 0;
	/* A server that failed may send itself another signal, which the main thread takes first. */
	if ((u32)thread == thread >> 32)
		tell_end(target);
	bool is_told = cfg.has_command && current_session(&thd);
	if (is_told && thd)
		is_told = bpf_probe_read_user(&command, sizeof(command), (void *)(thd + cfg.command)) == 0 &&
			  (command == COM_SLEEP || tell_session(target, thd));
	if (!is_told)
		__sync_fetch_and_add(&target->untold, 1);
	return 0;
}
