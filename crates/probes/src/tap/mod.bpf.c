/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The tap: when a server's session thread has sent a reply, copy what the server knows about the
 * statement out of the server's memory.
 *
 * There is one body, and one thin program for each rung of the ladder. User space loads one of
 * them. Only a reply with a status can end a statement. User space decides whether it did
 * (fold.rs).
 */
#include "session.bpf.h"
#include "parts.bpf.h"
#include "socket.bpf.h"
#include "../tap/toss.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define EINTR 4
#define EAGAIN 11
#define ERESTARTSYS 512

#define COM_INIT_DB 2
#define COM_QUERY 3 /* where the command is not known */
#define COM_CONNECT 11
#define COM_CHANGE_USER 17
#define SERVER_MORE_RESULTS_EXISTS 8

/* A send of a session, with the status that it had then. */
struct send {
	struct target *target;
	struct session *session;
	const struct sock *socket; /* NULL where the hook is none of a send */
	u64 collectors; /* what is collected of the statement */
	u64 thd;
	u64 diagnostics;
	s64 result; /* bytes or an error */
	u8 status[STACK_SPAN_MAX] __attribute__((aligned(8)));
};

/* Whether the session's command runs a statement; false where that is not known. */
static __always_inline bool runs_one(u64 thd)
{
	u32 command;

	return cfg.has_command &&
	       bpf_probe_read_user(&command, sizeof(command), (void *)(thd + cfg.command)) == 0 &&
	       runs_statement(command);
}

/*
 * A send of a reply that goes on: keep its size and the time of its first byte. Whether it is the
 * first of its statement.
 */
static __always_inline bool on_partial_send(const struct send *send)
{
	struct session *session = send->session;
	/* Without a start the receive of the request tells one statement from the next. */
	u64 start = session->received_ns | 1;

	if (send->result <= 0 || (cfg.has_start && !read_u64(&start, send->thd + cfg.start)))
		return false;
	if (session->start == start) {
		session->bytes += send->result;
		return false;
	}
	/* Where the query cache answers, no reply need have a status, and this send is told itself. */
	if (!cfg.has_query_cache) {
		count_unended(send->target, session);
		if (runs_one(send->thd))
			session->unended = is_of_x_protocol(send->target, send->socket) ?
						   LOST_X_PROTOCOL : LOST_NO_STATEMENT;
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

	/* It may be any command. */
	if (!cfg.has_text || (!cfg.has_command && !record->head.text_length))
		return true;
	if (cfg.has_command && DATA(u32, record, cfg.at_command) == COM_INIT_DB)
		return true;
	if (cfg.has_status && DATA(u32, record, cfg.at_status) != cfg.status_ok)
		return false;
	if (record->head.text_length < 2)
		return false;
	u8 first = text[0] | 0x20;
	return first == 'u' ? (text[1] | 0x20) == 's' : first < 'a' || first > 'z';
}

/* Notes what the reply tells of its session; whether user space knows it already. */
static __always_inline bool is_identified(struct statement *record, struct session *session)
{
	u32 command = cfg.has_command ? DATA(u32, record, cfg.at_command) : COM_QUERY;
	u64 id = cfg.has_id ? DATA(u32, record, cfg.at_id) : 0, database = 0, database_length = 0;

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
	if (!cfg.has_start || session->start == DATA(u64, record, cfg.at_start)) {
		record->head.bytes += session->bytes;
		record->head.first_byte_ns = session->first_byte_ns;
	}
	session->start = 0;
	session->cached = 0;
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
	u32 command = cfg.has_command ? DATA(u32, record, cfg.at_command) : COM_QUERY;
	bool is_part = cfg.has_status && DATA(u32, record, cfg.at_status) == cfg.status_empty;

	if (is_part && !runs_statement(command)) {
		discard(&record->head);
		return DONE;
	}
	if (!identified && !is_identified(record, send->session)) {
		bool goes_on = cfg.has_server_status &&
			       (DATA(u32, record, cfg.at_server_status) & SERVER_MORE_RESULTS_EXISTS);
		discard(&record->head);
		return goes_on || is_part ? NOT_IDENTIFIED_INSIDE : NOT_IDENTIFIED;
	}
	if (!is_part) {
		bool goes_on = cfg.has_server_status &&
			       (DATA(u32, record, cfg.at_server_status) & SERVER_MORE_RESULTS_EXISTS);
		end_reply(record, send->session);
		if (send->collectors & COLLECT_WAITS)
			end_parts(send->target, &send->session->parts, record->head.end_ns, goes_on);
	} else if (!cfg.has_start)
		/* All but LOAD DATA LOCAL, which asks its client for data. */
		send->session->cached = !record->head.text_length ||
					(record->data[cfg.data_length] | 0x20) != 'l';
	submit(&record->head);
	return DONE;
}

/* Writes the record of a reply; where user space does not know the session, nothing yet. */
static __always_inline enum outcome write_reply(const struct send *send, u64 now, bool identified)
{
	u8 query[STACK_SPAN_MAX] __attribute__((aligned(8)));
	u64 text, length;

	if (cfg.has_text &&
	    bpf_probe_read_user(query, cfg.query.length, (void *)(send->thd + cfg.query.offset))) {
		count_lost(send->target, LOST_UNREADABLE_SESSION, 1);
		return DONE;
	}
	text_of(query, &text, &length);
	if (!(send->collectors & COLLECT_TEXTS))
		length = at_most(length, SHORT_TEXT);
	struct parts *parts = &send->session->parts;
	bool tells_parts = send->collectors & COLLECT_WAITS && has_parts(send->target, parts);
	u64 room = tells_parts ? 8 * part_words(parts) : 0;
	struct statement *record =
		reserve_statement(send->target, RECORD_STATEMENT, now, length, room);

	if (!record)
		return DONE;
	record->head.thd = send->thd;
	record->head.bytes = send->result > 0 ? send->result : 0;
	record->head.result = send->result;
	record->head.received_ns = cfg.has_start ? 0 : send->session->received_ns;
	copy_stack_span(record, &cfg.query, query);
	copy_stack_span(record, &cfg.status, send->status);
	/* A result set has neither an error nor rows that it changed. */
	u32 status = cfg.has_status ? DATA(u32, record, cfg.at_status) : cfg.status_ok;
	bool ends = status == cfg.status_ok || status == cfg.status_ok_bulk ||
		    status == cfg.status_error;
	if (!read_spans(record, send->thd, cfg.session_spans, cfg.session) ||
	    !read_spans(record, send->diagnostics, ends ? cfg.diagnostics_spans : 0,
			cfg.diagnostics_span)) {
		count_lost(send->target, LOST_UNREADABLE_SESSION, 1);
		discard(&record->head);
		return DONE;
	}
	read_text(send->target, record, text, length);
	if (tells_parts) {
		u64 at = cfg.data_length + text_room(length);
		record->head.parts_at = sizeof(*record) + at;
		write_parts((u64 *)(record->data + at), parts, send->thd,
			    DATA(u64, record, cfg.at_start));
	}
	return judge(send, record, identified);
}

/*
 * Who the session is must come before its reply: where that is not known, the reply is written again
 * after it. It takes its time anew: the thread may have moved to another processor between the two, and
 * records of two rings are in order only by their times.
 */
static __always_inline void on_reply(const struct send *send)
{
	/* Before the time of the reply is taken: the parts are never more than the whole. */
	if (send->collectors & COLLECT_WAITS)
		close_parts_at_reply(send->target, &send->session->parts);
	u64 now = bpf_ktime_get_ns();
	enum outcome outcome = write_reply(send, now, false);

	if (outcome == DONE)
		return;
	struct session *session = send->session;

	if (!send_identity(send->target, send->thd, now, session->id, session->database,
			   session->database_length)) {
		send->session->id = NOBODY;
		return;
	}
	/* Inside a routine the user can be the definer: its end shall tell again who this is. */
	if (outcome == NOT_IDENTIFIED_INSIDE)
		send->session->id = NOBODY;
	write_reply(send, bpf_ktime_get_ns(), true);
}

/*
 * A send by the running thread of a target, of `result` bytes or with an error; without a socket
 * where the hook is none of a send.
 */
static __always_inline void on_session_send(struct target *target, u64 thd,
					    const struct sock *socket, s64 result, u64 collectors)
{
	/* All of it is set: verifiers before 6.3 let nobody read a stack that was not written. */
	struct send send = { .target = target, .socket = socket, .collectors = collectors,
			     .thd = thd, .result = result };

	/* Not sent yet: the server tries again. */
	if (result == -EAGAIN || result == -EINTR || result == -ERESTARTSYS)
		return;
	send.session = session_of(target, thd);
	if (!send.session)
		return;
	if (socket && !is_of_client(target, send.session, socket))
		return;
	if ((cfg.has_diagnostics && !read_u64(&send.diagnostics, thd + cfg.diagnostics)) ||
	    (cfg.has_status && bpf_probe_read_user(send.status, cfg.status.length,
						   (void *)(send.diagnostics + cfg.status.offset)))) {
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
		return;
	}
	/*
	 * Without a status any send may be the last. The first send of a statement can be all of it,
	 * where the query cache answers.
	 */
	if (!cfg.has_status || *(u32 *)(send.status + (cfg.at_status - cfg.status.at)) != cfg.status_empty ||
	    (on_partial_send(&send) && cfg.has_query_cache))
		on_reply(&send);
}

static __always_inline int on_send_by_current(struct target *target, const struct sock *socket,
					      s64 result)
{
	u64 collectors = cfg.has_trial ? on_send_in_trial(socket, result) : COLLECT_ALL;
	u64 thd;

	if (!(collectors & COLLECT_STATEMENTS))
		return 0;
	if (!current_session(&thd))
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
	else if (thd)
		on_session_send(target, thd, socket, result, collectors);
	else if (result > 0 && is_of_some_client(socket) && !is_main_thread())
		count_without_statement(target, socket);
	return 0;
}

/* Kernel 6.3 and later: fires after every send call on any socket, of any kind. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int result, int flags)
{
	struct target *target = served_target();

	return target ? on_send_by_current(target, sk, result) : 0;
}

/*
 * Kernel 5.13 to 6.4, before sock_send_length: the function that every send call passes through;
 * user space names the one that this kernel has (program.rs).
 */
SEC("fexit/sock_sendmsg")
int BPF_PROG(on_sendmsg, struct socket *socket, struct msghdr *message, int result)
{
	struct target *target = served_target();

	return target ? on_send_by_current(target, socket->sk, result) : 0;
}

/*
 * A receive by the running thread of a target, of `result` bytes or with an error. After a reply,
 * the first one says that the session waits for its next request. Where the layout has no start, the
 * last one with bytes before the reply begins says when the request was there.
 */
static __always_inline int on_receive_by_current(struct target *target, struct sock *socket,
						 s64 result)
{
	struct session *session;
	u64 thd;

	if (!current_session(&thd) || !thd)
		return 0;
	if (cfg.has_trial && result > 0)
		on_request(target, thd, socket);
	if (cfg.has_start)
		session = bpf_task_storage_get(&sessions, bpf_get_current_task_btf(), NULL, 0);
	else
		session = session_of(target, thd);
	if (!session || session->thd != thd)
		return 0;
	if (!cfg.has_start && result > 0)
		meet_by_receive(target, session, socket);
	/* Another server answers by another socket. */
	if (session->socket && session->socket != (u64)socket)
		return 0;
	u64 now = bpf_ktime_get_ns();
	/*
	 * What comes while a reply goes on is data that the statement asked its client for. Of a statement that
	 * began before the tap, it may be the answer of another server.
	 */
	bool is_over = !session->start ||
		       (session->cached && (session->received_ns || is_of_some_client(socket)));
	if (!cfg.has_start && result > 0 && is_over) {
		session->received_ns = now;
		session->start = 0;
		session->cached = 0;
	}
	if (!session->replied)
		return 0;
	session->replied = 0;
	struct head *head = reserve(RECORD_READY, sizeof(*head));
	if (!head)
		return 0; /* a time that is not compared */
	head->tgid = target->tgid;
	head->thd = thd;
	head->end_ns = now;
	submit(head);
	return 0;
}

/* The numbers of the calls that send and of those that receive, on x86-64. */
#define NR_READ 0
#define NR_WRITE 1
#define NR_READV 19
#define NR_WRITEV 20
#define NR_SENDTO 44
#define NR_RECVFROM 45
#define NR_SENDMSG 46
#define NR_RECVMSG 47

/* Every kernel of ours: the end of every system call, of which those that send are looked at. */
SEC("raw_tp/sys_exit")
int on_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct target *target = served_target();

	if (!target)
		return 0;
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	u64 call = BPF_CORE_READ(regs, orig_ax);
	s64 result = ctx->args[1];
	bool receives = call == NR_RECVFROM || call == NR_RECVMSG || call == NR_READ || call == NR_READV;
	bool sends = call == NR_SENDTO || call == NR_SENDMSG || call == NR_WRITE || call == NR_WRITEV;

	if (!sends && !((cfg.tells_ready || cfg.has_trial) && receives))
		return 0;
	/* Files are read and written with the same calls as sockets: the binary log, for one. */
	struct sock *socket = socket_of(BPF_CORE_READ(regs, di));

	if (!socket)
		return 0;
	return sends ? on_send_by_current(target, socket, result)
		     : on_receive_by_current(target, socket, result);
}

/*
 * Kernel 6.3 and later: the end of a call that receives. Only for layouts that need it, and for who
 * compares with the server's own times, which run on after the reply until the session waits for its
 * next request.
 */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock *sk, int result, int flags)
{
	struct target *target = served_target();

	return target ? on_receive_by_current(target, sk, result) : 0;
}

/* The same before sock_recv_length, only for layouts that need it. */
SEC("fexit/sock_recvmsg")
int BPF_PROG(on_recvmsg, struct socket *socket, struct msghdr *message, int flags, int result)
{
	struct target *target = served_target();

	return target ? on_receive_by_current(target, socket->sk, result) : 0;
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
		on_session_send(target, thd, NULL, 0, COLLECT_ALL);
	return 0;
}
