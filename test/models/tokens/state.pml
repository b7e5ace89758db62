/* What the nodes and the processes consist of. */

#ifndef APART
#define APART 2     /* by how many ticks the clocks of the nodes may differ */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2  /* of both processes together */
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef LOSSES
#define LOSSES 1    /* of answers to acquisitions */
#endif
#ifndef LEASE
#define LEASE 3     /* ticks */
#endif

/* A tick has so many tokens: what counts on without the clock stays below a tick. */
#define UNIT 8
/* lib/stores/quorum/majority-acquisition.ts, marginOf */
#define MARGIN (LEASE * UNIT / 2)
/* plain.include.lua: more than the tokens that a holder counts on by itself. */
#define STRIDE 2
#define NODES 3
#ifdef MAJORITY_OF_HALF
#define NEEDED 1
#else
#define NEEDED 2
#endif

#define max(a, b) ((a) > (b) -> (a) : (b))
#define min(a, b) ((a) < (b) -> (a) : (b))
#define less(a, b) ((a) > (b) -> (a) - (b) : 0)

/* The owner of a hold: a process by its number + 1, or a former owner. */
#define NONE 0
#define FORMER 3

#define IDLE 0
#define ASKING 1
#define TELLING 2
#define HOLDING 3

typedef Node {
  byte ahead;       /* by how many ticks its clock is ahead of the slowest one */
  byte fence;
  byte owner;
  byte left;        /* of the hold */
  byte barred       /* for how long its votes do not count */
}

typedef Client {
  byte state;
  byte left;        /* of the lease, from the request on */
  byte token;
  byte pending;     /* the nodes that are still to be asked or told: a bit each */
  byte granted;     /* the nodes whose votes count */
  bit handed_off
}

/* All tokens are counted from the present time of the slowest clock. 0 is any time before. */
Node node[NODES];
Client client[2];
byte vote[6];       /* the tokens of the votes: those of the first process, then those of the second */
byte last_token;
byte attempts = ATTEMPTS;
byte restarts = RESTARTS;
byte losses = LOSSES;
bit begun;

hidden byte i, token, least, greatest, middle, votes, ok;

#define clock_of(n) (node[n].ahead * UNIT + 1)
#define bit_of(n) (1 << (n))
#define vote_of(p, n) vote[NODES * (p) + (n)]
