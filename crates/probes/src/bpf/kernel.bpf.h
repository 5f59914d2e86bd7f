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
} __attribute__((preserve_access_index));

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct inode {
	unsigned short i_mode;
} __attribute__((preserve_access_index));

struct file {
	struct inode *f_inode;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	int tgid;
	struct thread_struct thread;
	struct files_struct *files;
	unsigned long nvcsw;
	unsigned long nivcsw;
} __attribute__((preserve_access_index));

struct bpf_raw_tracepoint_args;
struct sock;
struct socket;
struct msghdr;

#endif
