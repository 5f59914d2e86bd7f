/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What both halves of the profile see beside what the carrier has. */
#ifndef WAGGLE_PROFILE_SHARED_H
#define WAGGLE_PROFILE_SHARED_H

/* Servers that were tried had 31 frames at most; the kernel keeps 127. */
#define USER_FRAMES 96
#define KERNEL_FRAMES 32
#define THREAD_NAME 16

/* What a thread of a server did when the clock of its processor ticked. */
struct sample {
	struct head head; /* `thd` is 0 where the thread serves no session */
	u64 id;
	u64 start;
	u64 took_ns; /* to note all this */
	u32 tid;
	u32 command;
	s32 user_bytes; /* of `user`; below 0: it could not be read */
	s32 kernel_bytes;
	u8 thread_name[THREAD_NAME];
	u64 user[USER_FRAMES]; /* the innermost first */
	u64 kernel[KERNEL_FRAMES];
};

#endif
