/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The few kernel types that the probes look into. They are relocated to the running kernel when a
 * program is loaded (CO-RE), so only the members that are used are named here.
 */
#ifndef WAGGLE_KERNEL_BPF_H
#define WAGGLE_KERNEL_BPF_H

/* Makes bpf_tracing.h use the kernel's own names of the registers, as below. */
#define __VMLINUX_H__

#include <linux/types.h>
#include <linux/bpf.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

/* The registers of a thread as the kernel keeps them; the names of x86-64. */
struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long cx;
	unsigned long dx;
	unsigned long orig_ax;
	unsigned long ax;
	unsigned long sp;
	unsigned long ip;
	unsigned long bp;
} __attribute__((preserve_access_index));

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct inode {
	unsigned short i_mode;
} __attribute__((preserve_access_index));

struct file {
	struct inode *f_inode;
	void *private_data;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct rq {
	u64 clock;
} __attribute__((preserve_access_index));

struct cfs_rq {
	struct rq *rq;
} __attribute__((preserve_access_index));

struct sched_entity {
	struct cfs_rq *cfs_rq;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime; /* when it was put on a processor last */
	unsigned char sched_delayed; /* since 6.12 */
} __attribute__((preserve_access_index));

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
} __attribute__((preserve_access_index));

struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes;
} __attribute__((preserve_access_index));

struct signal_struct {
	int group_exit_code;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	struct signal_struct *signal;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1; /* by the freezer of version 2 of control groups */
	struct thread_struct thread;
	struct files_struct *files;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned long min_flt;
	unsigned long maj_flt;
	struct sched_entity se;
	struct sched_info sched_info;
	struct task_io_accounting ioac;
} __attribute__((preserve_access_index));

struct sock_common {
	unsigned short skc_num; /* the local port */
	unsigned short skc_family;
	unsigned char skc_reuse : 4;
	unsigned long skc_flags;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
} __attribute__((preserve_access_index));

/* Bits of `skc_flags`; the number is that of the running kernel. */
enum sock_flags {
	SOCK_KEEPOPEN = 3,
};

struct sockaddr_un {
	char sun_path[108];
} __attribute__((preserve_access_index));

struct unix_address {
	struct sockaddr_un name[0];
} __attribute__((preserve_access_index));


/* Begins with the `struct sock`. */
struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
} __attribute__((preserve_access_index));

struct socket {
	struct sock *sk;
} __attribute__((preserve_access_index));

struct bpf_raw_tracepoint_args;
struct msghdr;

#endif
