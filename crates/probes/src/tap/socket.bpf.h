/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Which socket is that of a session's own client. A session's thread can send to others as well:
 * FEDERATED, Spider and CONNECT to another server, Galera to other nodes, an audit plugin to
 * syslog, a login to LDAP or DNS.
 *
 * The server accepted the client's socket, and made those to others itself. An accepted socket has
 * what its listener had: an address, where it is a unix socket (unix_stream_connect in
 * net/unix/af_unix.c), and SO_REUSEADDR, where it is one of TCP (sk_clone_lock in net/core/sock.c
 * copies it; every server sets it). A connection keeps its socket, so the answer is remembered.
 */
#ifndef WAGGLE_SOCKET_BPF_H
#define WAGGLE_SOCKET_BPF_H

#include "session.bpf.h"

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define AF_NETLINK 16
#define SOCK_STREAM 1

#define S_IFMT 0170000
#define S_IFSOCK 0140000

enum origin {
	MADE, /* by the server, to somebody else */
	UNMARKED, /* TCP without the mark: made, if accepted ones have it here */
	ACCEPTED,
};

static __always_inline enum origin origin_of(const struct sock *socket)
{
	u16 family = BPF_CORE_READ(socket, __sk_common.skc_family);
	u16 type = BPF_CORE_READ(socket, sk_type);

	if (family == AF_NETLINK)
		return MADE;
	if (family == AF_UNIX) {
		const struct unix_sock *of_unix = (const struct unix_sock *)socket;
		if (!bpf_core_type_exists(struct unix_sock))
			return ACCEPTED; /* a kernel whose unix sockets are a module */
		return type == SOCK_STREAM && BPF_CORE_READ(of_unix, addr) ? ACCEPTED : MADE;
	}
	if (family != AF_INET && family != AF_INET6)
		return ACCEPTED; /* of a kind that only a client can have chosen, such as SMC */
	if (type != SOCK_STREAM)
		return MADE;
	return BPF_CORE_READ_BITFIELD_PROBED(socket, __sk_common.skc_reuse) ? ACCEPTED : UNMARKED;
}

/*
 * Whether the server accepted this socket from a client. Galera and group replication accept those of
 * other nodes as well, but only those of clients are kept alive (check_connection in
 * sql/sql_connect.cc; nothing of the kind in gu_asio_socket_util.hpp and in xcom).
 */
static __always_inline bool is_of_some_client(const struct sock *socket)
{
	if (origin_of(socket) != ACCEPTED)
		return false;
	if (BPF_CORE_READ(socket, __sk_common.skc_family) == AF_UNIX)
		return true;
	return BPF_CORE_READ(socket, __sk_common.skc_flags) >>
		       bpf_core_enum_value(enum sock_flags, SOCK_KEEPOPEN) & 1;
}

/* Whether it is the one that accepts connections, and refuses them without a session. */
static __always_inline bool is_main_thread(void)
{
	u64 id = bpf_get_current_pid_tgid();

	return (u32)id == id >> 32;
}

/* Whether it was accepted where the server speaks the X protocol. */
static __always_inline bool is_of_x_protocol(const struct target *target, const struct sock *socket)
{
	const struct unix_sock *of_unix = (const struct unix_sock *)socket;
	u32 length = target->x_socket_length;
	const struct unix_address *of_listener;
	const char *path;
	u64 name, left;

	if (!socket)
		return false;
	if (BPF_CORE_READ(socket, __sk_common.skc_family) != AF_UNIX)
		return target->x_port && BPF_CORE_READ(socket, __sk_common.skc_num) == target->x_port;
	if (!length || !bpf_core_type_exists(struct unix_sock))
		return false;
	of_listener = BPF_CORE_READ(of_unix, addr);
	if (!of_listener)
		return false;
	path = of_listener->name[0].sun_path;
#pragma unroll
	for (u32 i = 0; i < X_SOCKET_MAX / 8; i++) {
		if (length <= i * 8)
			return true;
		if (bpf_probe_read_kernel(&name, sizeof(name), path + i * 8))
			return false;
		left = length - i * 8;
		name ^= *(const u64 *)(target->x_socket + i * 8);
		if (left < 8 ? name << (64 - 8 * left) : name)
			return false;
	}
	return true;
}

/* A reply became no statement. */
static __always_inline void count_without_statement(struct target *target, const struct sock *socket)
{
	if (is_of_x_protocol(target, socket))
		count_lost(target, LOST_X_PROTOCOL, 1);
	else
		count_lost(target, LOST_NO_STATEMENT, 1);
}

/* From now on this is the socket of the client of a session. */
static __always_inline void keep_socket(struct target *target, struct session *session,
					const struct sock *socket, u32 id, u64 start)
{
	if (!target->marks_tcp && origin_of(socket) == ACCEPTED &&
	    BPF_CORE_READ(socket, __sk_common.skc_family) != AF_UNIX)
		target->marks_tcp = 1;
	bool is_certain = is_of_some_client(socket);

	/* What was counted of the reply so far went to others. */
	if (session->socket && session->socket != (u64)socket && is_certain && !session->socket_is_certain)
		session->start = 0;
	session->socket = (u64)socket;
	session->socket_id = id;
	session->socket_start = start;
	session->socket_is_certain = is_certain;
}

/*
 * Whether a socket of the same connection as the one that is remembered is the client's instead. One that
 * was accepted from a client is, and stays. Of two alike, the last one of the statement in which the first
 * was met: a statement ends with its reply. Without a start, that statement is not known where it began
 * before the tap; then the last one is right as well, so that no statement is lost.
 */
static __always_inline bool is_met_later(const struct session *session, bool is_certain, u64 start)
{
	if (is_certain != (bool)session->socket_is_certain)
		return is_certain;
	return session->socket_start == start || (!cfg.has_start && !session->socket_start);
}

/*
 * The slow way, for a socket that is not the one remembered, or is not certain: of that one it may have
 * been learned meanwhile that the server made it. In the statement in which the client's
 * socket was met it may have been mistaken (two can be accepted: Galera listens as well).
 */
static __always_inline bool meet_socket(struct target *target, struct session *session,
					const struct sock *socket)
{
	u32 id = 0;
	u64 start = session->received_ns; /* where the layout has no start */
	enum origin origin = origin_of(socket);

	if (origin == MADE || (origin == UNMARKED && target->marks_tcp))
		return false;
	/* Without the id a new connection looks like the one before it at the same address. */
	if (cfg.has_id) {
		if (bpf_probe_read_user(&id, sizeof(id), (void *)(session->thd + cfg.id)) ||
		    (cfg.has_start && !read_u64(&start, session->thd + cfg.start)))
			return true; /* what cannot be read is told by what is read next */
		bool is_certain = is_of_some_client(socket);
		if (session->socket && session->socket != (u64)socket &&
		    session->socket_id == id && !is_met_later(session, is_certain, start)) {
			/* No session has two clients: the id or the start is no such thing. */
			if (is_certain)
				count_without_statement(target, socket);
			return false;
		}
	}
	keep_socket(target, session, socket, id, start);
	return true;
}

/* A session receives by a socket: that of its client is certain before anything is sent to others. */
static __always_inline void meet_by_receive(struct target *target, struct session *session,
					    const struct sock *socket)
{
	u32 id;

	if (session->socket == (u64)socket || (session->socket && session->socket_is_certain) ||
	    !cfg.has_id || !is_of_some_client(socket) ||
	    bpf_probe_read_user(&id, sizeof(id), (void *)(session->thd + cfg.id)))
		return;
	keep_socket(target, session, socket, id, session->received_ns);
}

/* Whether this is the socket of the client of a session. */
static __always_inline bool is_of_client(struct target *target, struct session *session,
					 const struct sock *socket)
{
	return (session->socket == (u64)socket && session->socket_is_certain) ||
	       meet_socket(target, session, socket);
}

/* The socket behind a descriptor of the running thread; NULL where it is none. */
static __always_inline struct sock *socket_of(u32 fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return NULL;
	struct socket *open_socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(open_socket, sk);
}

#endif
