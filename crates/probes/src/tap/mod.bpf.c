/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The tap: when a session thread of the server has sent a reply, copy what the server knows of the
 * statement out of its own memory.
 *
 * One body, one thin program for each rung of the ladder; user space loads exactly one of them.
 * Only a reply whose status is set can end a statement; whether it did is decided in user space
 * (fold.rs).
 */
#include "session.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define EINTR 4
#define EAGAIN 11
#define ERESTARTSYS 512

#define COM_INIT_DB 2
#define COM_QUERY 3
#define COM_CONNECT 11
#define COM_CHANGE_USER 17
#define COM_STMT_EXECUTE 23
#define SERVER_MORE_RESULTS_EXISTS 8

/* A connection id that no session has. */
#define NOBODY (~0ULL)

#define S_IFMT 0170000
#define S_IFSOCK 0140000

/* The skeleton generates a Rust type for what it sees in a section. */
struct identity _identity = {};
struct session _session = {};
struct ring _ring = {};
struct targets _targets = {};

/* A send of a session, with the status that it had then. */
struct send {
	struct target *target;
	struct session *session;
	u64 thd;
	u64 diagnostics;
	s64 result; /* bytes or an error */
	u8 status[STACK_SPAN_MAX] __attribute__((aligned(8)));
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct session);
} sessions SEC(".maps");

/* The target that the running thread belongs to, where it has the layout of this program. */
static __always_inline struct target *served_target(void)
{
	struct target *target = current_target();

	return target && target->program == cfg.program ? target : NULL;
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
		session->thd = thd;
		session->turn = target->turn;
		session->id = NOBODY;
		session->start = 0;
		session->replied = 0;
	}
	return session;
}

/*
 * A send of a reply that goes on: keep its size and the time of its first byte. Whether it is the
 * first of its statement.
 */
static __always_inline bool on_partial_send(const struct send *send)
{
	struct session *session = send->session;
	u64 start;

	if (send->result <= 0 || !read_u64(&start, send->thd + cfg.start))
		return false;
	if (session->start == start) {
		session->bytes += send->result;
		return false;
	}
	session->start = start;
	session->bytes = send->result;
	session->first_byte_ns = bpf_ktime_get_ns();
	return true;
}

/*
 * USE writes the new name over the old one where it fits: neither the pointer nor the length need
 * change. A comment may stand in front, so what does not begin with a letter may be one as well.
 */
static __always_inline bool may_change_database(struct statement *record)
{
	const u8 *text = record->data + cfg.data_length;

	if (DATA(u32, record, cfg.at_command) == COM_INIT_DB)
		return true;
	if (DATA(u32, record, cfg.at_status) != cfg.status_ok || record->head.text_length < 2)
		return false;
	u8 first = text[0] | 0x20;
	return first == 'u' ? (text[1] | 0x20) == 's' : first < 'a' || first > 'z';
}

/* Notes what the reply tells of its session; whether user space knows it already. */
static __always_inline bool is_identified(struct statement *record, struct session *session)
{
	u32 command = DATA(u32, record, cfg.at_command);
	u64 id = DATA(u32, record, cfg.at_id), database = 0, database_length = 0;

	if (cfg.has_database) {
		database = DATA(u64, record, cfg.at_database);
		database_length = DATA(u64, record, cfg.at_database_length);
	}
	if (session->id == id && session->database == database &&
	    session->database_length == database_length && command != COM_CONNECT &&
	    command != COM_CHANGE_USER && !may_change_database(record))
		return true;
	session->id = id;
	session->database = database;
	session->database_length = database_length;
	return false;
}

/* Adds what the reply sent before this send, and notes that it is there. */
static __always_inline void end_reply(struct statement *record, struct session *session)
{
	if (cfg.tells_ready)
		session->replied = 1;
	if (!session->start)
		return;
	if (session->start == DATA(u64, record, cfg.at_start)) {
		record->head.bytes += session->bytes;
		record->head.first_byte_ns = session->first_byte_ns;
	}
	session->start = 0;
}

enum outcome {
	DONE,
	NOT_IDENTIFIED,
	NOT_IDENTIFIED_INSIDE, /* the same, and more results follow */
};

/* What becomes of a record that holds all numbers of its reply, and its text. */
static __always_inline enum outcome judge(const struct send *send, struct statement *record,
					  bool identified)
{
	u32 command = DATA(u32, record, cfg.at_command);
	bool is_part = DATA(u32, record, cfg.at_status) == cfg.status_empty;

	if (is_part && command != COM_QUERY && command != COM_STMT_EXECUTE) {
		discard(&record->head);
		return DONE;
	}
	if (!identified && !is_identified(record, send->session)) {
		bool goes_on = cfg.has_server_status &&
			       (DATA(u32, record, cfg.at_server_status) & SERVER_MORE_RESULTS_EXISTS);
		discard(&record->head);
		return goes_on || is_part ? NOT_IDENTIFIED_INSIDE : NOT_IDENTIFIED;
	}
	if (!is_part)
		end_reply(record, send->session);
	submit(&record->head);
	return DONE;
}

/* Writes the record of a reply; where user space does not know the session, nothing yet. */
static __always_inline enum outcome write_reply(const struct send *send, u64 now, bool identified)
{
	u8 query[STACK_SPAN_MAX] __attribute__((aligned(8)));

	if (bpf_probe_read_user(query, cfg.query.length, (void *)(send->thd + cfg.query.offset))) {
		count_lost(send->target, LOST_UNREADABLE_SESSION, 1);
		return DONE;
	}
	u64 text = *(u64 *)(query + (cfg.at_text - cfg.query.at));
	u64 length = *(u64 *)(query + (cfg.at_text_length - cfg.query.at));
	struct statement *record = reserve_statement(send->target, RECORD_STATEMENT, length);

	if (!record)
		return DONE;
	record->head.thd = send->thd;
	record->head.end_ns = now;
	record->head.bytes = send->result > 0 ? send->result : 0;
	record->head.result = send->result;
	copy_stack_span(record, &cfg.query, query);
	copy_stack_span(record, &cfg.status, send->status);
	/* A result set has neither an error nor rows that it changed. */
	u32 status = DATA(u32, record, cfg.at_status);
	u32 ends = status == cfg.status_ok || status == cfg.status_error ? cfg.diagnostics_spans : 0;
	if (!read_spans(record, send->thd, cfg.session_spans, cfg.session) ||
	    !read_spans(record, send->diagnostics, ends, cfg.diagnostics_span)) {
		count_lost(send->target, LOST_UNREADABLE_SESSION, 1);
		discard(&record->head);
		return DONE;
	}
	read_text(send->target, record, text, length);
	return judge(send, record, identified);
}

/*
 * Records come out of a ring in the order of their reservation, and who the session is must come
 * before its reply: where that is not known, the reply is written again after it.
 */
static __always_inline void on_reply(const struct send *send)
{
	u64 now = bpf_ktime_get_ns();
	enum outcome outcome = write_reply(send, now, false);

	if (outcome == DONE)
		return;
	if (!send_identity(send->target, send->thd, now, send->session)) {
		send->session->id = NOBODY;
		return;
	}
	/* Inside a routine the user can be the definer: its end shall tell again who this is. */
	if (outcome == NOT_IDENTIFIED_INSIDE)
		send->session->id = NOBODY;
	write_reply(send, now, true);
}

/* A send by the running thread of a target, of `result` bytes or with an error. */
static __always_inline void on_session_send(struct target *target, u64 thd, s64 result)
{
	/* All of it is set: verifiers before 6.3 let nobody read a stack that was not written. */
	struct send send = { .target = target, .thd = thd, .result = result };

	/* Not sent yet: the server tries again. */
	if (result == -EAGAIN || result == -EINTR || result == -ERESTARTSYS)
		return;
	send.session = session_of(target, thd);
	if (!send.session)
		return;
	if (!read_u64(&send.diagnostics, thd + cfg.diagnostics) ||
	    bpf_probe_read_user(send.status, cfg.status.length,
				(void *)(send.diagnostics + cfg.status.offset))) {
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
		return;
	}
	/* The first send of a statement can be all of it, where the query cache answers. */
	if (*(u32 *)(send.status + (cfg.at_status - cfg.status.at)) != cfg.status_empty ||
	    (on_partial_send(&send) && cfg.has_query_cache))
		on_reply(&send);
}

static __always_inline int on_send_by_current(struct target *target, s64 result)
{
	u64 thd;

	if (!current_session(&thd))
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
	else if (thd)
		on_session_send(target, thd, result);
	return 0;
}

/* Kernel 6.3 and later: fires after every send call on any socket, of any kind. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int result, int flags)
{
	struct target *target = served_target();

	return target ? on_send_by_current(target, result) : 0;
}

/*
 * Kernel 5.13 to 6.4, before sock_send_length: the function that every send call passes through;
 * user space names the one that this kernel has (program.rs).
 */
SEC("fexit/sock_sendmsg")
int BPF_PROG(on_sendmsg, struct socket *socket, struct msghdr *message, int result)
{
	struct target *target = served_target();

	return target ? on_send_by_current(target, result) : 0;
}

/* The numbers of the calls that send, on x86-64. */
#define NR_WRITE 1
#define NR_WRITEV 20
#define NR_SENDTO 44
#define NR_SENDMSG 46

/* Files are written with the same calls as sockets: the binary log, for one. */
static __always_inline bool is_socket(u32 fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return false;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file && (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
}

/* Every kernel of ours: the end of every system call, of which those that send are looked at. */
SEC("raw_tp/sys_exit")
int on_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct target *target = served_target();

	if (!target)
		return 0;
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	u64 call = BPF_CORE_READ(regs, orig_ax);
	if (call != NR_SENDTO && call != NR_SENDMSG) {
		if (call != NR_WRITE && call != NR_WRITEV)
			return 0;
		if (!is_socket(BPF_CORE_READ(regs, di)))
			return 0;
	}
	return on_send_by_current(target, (s64)ctx->args[1]);
}

/*
 * Kernel 6.3 and later, only for who compares with the server's own times, which run on after the
 * reply until the session waits for its next request: the end of its first call that receives.
 */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock *sk, int result, int flags)
{
	struct target *target = served_target();
	struct head *head;
	u64 thd;

	if (!target || !current_session(&thd) || !thd)
		return 0;
	struct session *session =
		bpf_task_storage_get(&sessions, bpf_get_current_task_btf(), NULL, 0);
	if (!session || session->thd != thd || !session->replied)
		return 0;
	session->replied = 0;
	u64 now = bpf_ktime_get_ns();
	head = reserve(RECORD_READY, sizeof(*head));
	if (!head)
		return 0; /* a time that is not compared */
	head->tgid = target->tgid;
	head->thd = thd;
	head->end_ns = now;
	submit(head);
	return 0;
}

/*
 * The last rung, a breakpoint: log_slow_statement(THD *), which the server calls once at the end of
 * a statement, after the reply. The size of the reply is not known here.
 */
SEC("uprobe")
int BPF_UPROBE(on_end, u64 thd)
{
	struct target *target = served_target();

	if (target && thd)
		on_session_send(target, thd, 0);
	return 0;
}
