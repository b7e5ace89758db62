/*
 * The charter of a quorum: three nodes whose longest lease is SHORT, a process that raises it to LONG and then takes a lock for so
 * long, and a rival with the short lease. Nodes restart empty.
 *
 * A step is one script on one node with its answer, a restart, or a tick. Which nodes answer a survey is open.
 *
 * Checked: the rival gets no lock while the lease lasts.
 *
 * docs/design/models.md says which part is which code, and what is left out.
 */
#define N 3
#define SHORT 1
#define LONG 3
#ifndef RESTARTS
#define RESTARTS 3
#endif

#ifdef RAISED_BY_A_MAJORITY
#define ENOUGH 2
#else
#define ENOUGH N
#endif
#define ROUNDS 2

#define is_in(set, n) (((set) >> (n)) & 1)
#define count(set) (((set) & 1) + (((set) >> 1) & 1) + (((set) >> 2) & 1))
#define greater(a, b) ((a) > (b) -> (a) : (b))

typedef Node {
  byte longest;  /* of its charter, 0 without one */
  byte known;    /* ticks for which a majority has known its run */
  bit votes;
  bit holds;     /* it knows the long lease */
}
Node node[N];

byte restarts = RESTARTS;
byte round = 1;
byte acknowledged;  /* nodes, in this round */
byte restarted;     /* nodes, since the first round began */
bit allowed;        /* leases of LONG may be given */
bit asked;          /* the lock has been taken, as far as it could be */
byte left;          /* ticks of the lease */

/* A node answers the raise. An answer over another connection than that of the first round does not count. */
inline raise(n) {
  node[n].longest = greater(node[n].longest, LONG);
  if
  :: round == 1 || !is_in(restarted, n) -> acknowledged = acknowledged | (1 << n)
  :: else
  fi
}

/* The next round, or the permission. */
inline allow() {
  if
  :: round == ROUNDS -> allowed = 1
  :: else -> round++; acknowledged = 0
  fi
}

/* Each node with a vote grants the lock. */
inline acquire() {
  asked = 1;
  node[0].holds = node[0].votes;
  node[1].holds = node[1].votes;
  node[2].holds = node[2].votes;
  if
  :: node[0].holds + node[1].holds + node[2].holds >= 2 -> left = LONG
  :: else
  fi
}

inline restart(n) {
  restarts--;
  restarted = restarted | (1 << n);
  node[n].longest = 0;
  node[n].known = 0;
  node[n].votes = 0;
  node[n].holds = 0
}

/* What the nodes with a vote say that answer: `from` is one of them, and `also` another one or the same. */
#ifdef NUMBERS_OF_THE_NODE_ITSELF
#define numbers(n, from, also) (greater(node[n].longest, SHORT))
#else
#define numbers(n, from, also) (greater(node[from].longest, node[also].longest))
#endif
#define answer(n, from, also) (node[from].votes && node[also].votes && !node[n].votes)
#ifdef RESTARTED_NODES_VOTE_AT_ONCE
#define is_over(n, longest_lease) (1)
#else
#define is_over(n, longest_lease) (node[n].known >= (longest_lease))
#endif

/* A survey: the run gets the numbers, and its vote if it has been known for long enough. */
inline survey(n, from, also) {
  node[n].longest = greater(node[n].longest, numbers(n, from, also));
  node[n].votes = is_over(n, numbers(n, from, also))
}

inline check_exclusion() {
  assert(left == 0 ||
    (node[0].votes && !node[0].holds) + (node[1].votes && !node[1].holds) + (node[2].votes && !node[2].holds) < 2)
}

inline tick() {
  if
  :: left > 0 -> left--
  :: else
  fi;
  node[0].known = (node[0].votes || node[0].known == LONG -> node[0].known : node[0].known + 1);
  node[1].known = (node[1].votes || node[1].known == LONG -> node[1].known : node[1].known + 1);
  node[2].known = (node[2].votes || node[2].known == LONG -> node[2].known : node[2].known + 1)
}

init {
  byte n, from, also;
  d_step {
    n = 0;
    do
    :: n < N -> node[n].longest = SHORT; node[n].votes = 1; n++
    :: else -> break
    od;
    n = 0
  }
  do
  :: atomic {
      n = 0; from = 0; also = 0;
      select(n : 0 .. 2);
      if
      :: !allowed && !is_in(acknowledged, n) && !(round == 2 && is_in(restarted, n)) -> raise(n)
      :: !allowed && count(acknowledged) >= ENOUGH -> allow()
      :: allowed && !asked -> acquire()
      :: restarts > 0 -> restart(n)
      :: !node[n].votes ->
          select(from : 0 .. 2);
          select(also : 0 .. 2);
          if
          :: answer(n, from, also) -> survey(n, from, also)
          :: else
          fi
      :: tick()
      fi;
      check_exclusion();
      n = 0; from = 0; also = 0
    }
  od
}
