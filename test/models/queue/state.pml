/* What the server, the processes and the network between them consist of. */
#ifndef N
#define N 3         /* processes, each with one caller */
#endif
#ifndef FAULTS
#define FAULTS 2    /* crashes, stops, lost or late requests, answers, messages and connections */
#endif
#ifndef CLAIM
#define CLAIM 1     /* ticks */
#endif
#ifndef LEASE
#define LEASE 3
#endif

/* What a fault may cost: a lease, and the time after which a request without an answer is sent again. */
#define COST (LEASE + 1)

#define NEVER 7               /* a timer that is not set */
#define min(a, b) ((a) < (b) -> (a) : (b))
#define max(a, b) ((a) > (b) -> (a) : (b))

/* The acquisition: `outcome` in lib/client/waiting/acquisition.ts. A hold is `granted` there. */
#define IDLE 0
#define ASKING 1
#define STANDING 2
#define HOLDING 3
#define LEAVING 4
#define DEAD 5

#define ANSWER_NONE 0
#define ANSWER_GRANTED 1
#define ANSWER_BUSY 2
#define ANSWER_UNLISTED 3     /* busy, and the request took no entry */

#define MESSAGE_NONE 0
#define MESSAGE_LEASE 1       /* granted: the whole lease */
#define MESSAGE_CLAIM 2       /* granted: a claim */
#define MESSAGE_NEXT 3

typedef Client {
  unsigned state : 3;
  unsigned stopped : 1;
  unsigned look : 3 = NEVER;          /* when it asks by itself */
  unsigned claims : 3 = NEVER;        /* until from now on only a claim is granted by a message; NEVER before the first answer */
  unsigned asked : 1;         /* the request under way was sent after that */
  unsigned sent : 3;          /* how long ago the request under way was sent */
  unsigned deadline : 3       /* of its lease, by its own clock */
}

/* What is between a process and the server. */
typedef Wire {
  unsigned answer : 2;        /* to an acquisition */
  unsigned wait : 3;          /* with the answer: ms until it asks again */
  unsigned stray : 1;         /* an acquisition that may still arrive, and has no reader for its answer */
  unsigned unheard : 1;       /* a release has no answer */
  unsigned release : 1;       /* is sent again */
  unsigned late_release : 1;
  unsigned late_renewal : 1;
  unsigned message : 2;
  unsigned value : 3;         /* its time: the age of a grant, or when to ask */
  unsigned late : 1           /* the message */
}

Client client[N];
Wire wire[N];

/* The server. */
byte hold[N];                 /* KEYS[1]: what is left of the hold; 0 for none */
bit claimed[N];               /* the hold is a claim: for a mutant */
bit entry[N];                 /* KEYS[3] */
byte arrival[N];              /* the order of arrivals; 0 for none */
byte age[N];                  /* since the arrival */
bit subscribed[N] = 1;

/* For the properties. */
byte faults = FAULTS;
byte struck;                  /* how many processes a fault has struck */
byte idle;                    /* how long no process has held the lock while one waits */
byte allowed;                 /* and how long that may be */
bit orderly[N];               /* nothing has disturbed its place */

hidden byte i, k, h, number, passed, rank, remaining, latest, sooner, yes;
