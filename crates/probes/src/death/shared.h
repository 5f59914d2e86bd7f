/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What both halves of the probe of ends see beside what the carrier has. */
#ifndef WAGGLE_DEATH_SHARED_H
#define WAGGLE_DEATH_SHARED_H

#define SENDER_NAME 16

/* A signal that ends a server was sent to it. */
struct fatal {
	struct head head; /* `thd`: that of the session whose thread sent it to its own process, 0: none */
	u64 id; /* of the connection of that session */
	u32 signal;
	u32 sender; /* the process that sent it; the server itself where one of its threads failed */
	u32 of_kernel; /* nobody asked for it */
	u32 unused;
	u8 sender_name[SENDER_NAME]; /* of the thread */
};

/* What a record of a dying session has at the end of its data. */
struct dying {
	s32 database_length; /* -1: none */
	u32 unused;
	u8 database[DATABASE_MAX];
};

#endif
