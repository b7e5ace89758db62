/* What a process does: lib/stores/quorum. */

#define is_valid(p) (client[p].state == HOLDING && client[p].left > 0)

inline start(p) {
  client[p].state = ASKING;
  client[p].left = LEASE;
  client[p].pending = 7
}

/* An owner is used once: what it has left behind on a node belongs to no process. */
inline forget(p) {
  client[p].state = IDLE;
  client[p].left = 0;
  client[p].token = 0;
  client[p].pending = 0;
  client[p].granted = 0;
  client[p].handed_off = 0;
  for (i : 0 .. NODES - 1) {
    vote_of(p, i) = 0;
    if :: node[i].owner == p + 1 -> node[i].owner = FORMER :: else fi
  };
  skip
}

/* The release reaches some of the nodes, or none: then the process has died. */
inline give_up(p, reached) {
  if :: (reached) & 1 -> node_release(0, p, client[p].token) :: else fi;
  if :: (reached) & 2 -> node_release(1, p, client[p].token) :: else fi;
  if :: (reached) & 4 -> node_release(2, p, client[p].token) :: else fi;
  forget(p)
}

/* A hold begins. */
inline begin_hold(p) {
  client[p].state = HOLDING;
  /* Exclusion. */
  assert(!is_valid(1 - p));
  /* The tokens grow in the order of the grants. */
  assert(client[p].token > last_token);
  last_token = client[p].token
}

/* charters.ts, time: the clock in the middle. */
inline middle_clock() {
  middle = max(min(clock_of(0), clock_of(1)), min(max(clock_of(0), clock_of(1)), clock_of(2)))
}

/* majority-acquisition.ts, agree: the greatest token of the votes, and the nodes that have to be told. */
inline agree(p) {
  greatest = 0;
  for (i : 0 .. NODES - 1) {
#ifdef TOKEN_OF_ONE_NODE
    if :: (client[p].granted & bit_of(i)) && greatest == 0 -> greatest = vote_of(p, i) :: else fi
#else
    if :: client[p].granted & bit_of(i) -> greatest = max(greatest, vote_of(p, i)) :: else fi
#endif
  }
  client[p].token = greatest;
  middle_clock();
  least = less(greatest, MARGIN);
  if :: greatest > middle + MARGIN -> least = greatest :: else fi;
  client[p].pending = 0;
#ifndef SLOW_CLOCKS_NOT_TOLD
  for (i : 0 .. NODES - 1) {
    if
    :: (client[p].granted & bit_of(i)) && vote_of(p, i) < least -> client[p].pending = client[p].pending | bit_of(i)
    :: else
    fi
  }
#endif
  client[p].granted = 0;
  for (i : 0 .. NODES - 1) { vote_of(p, i) = 0 };
  if :: client[p].pending == 0 -> begin_hold(p) :: else -> client[p].state = TELLING fi
}

/* ballot.ts, count. */
inline count(p) {
  votes = 0;
  for (i : 0 .. NODES - 1) { if :: client[p].granted & bit_of(i) -> votes++ :: else fi }
  if :: votes >= NEEDED -> agree(p) :: else fi
}

/* One node carries out an acquisition, and its answer is heard, or lost. */
inline ask(p, n, is_heard) {
  client[p].pending = client[p].pending & ~bit_of(n);
  node_acquire(n, p, 0);
  if
  :: ok && is_heard && node[n].barred == 0 ->
    client[p].granted = client[p].granted | bit_of(n);
    vote_of(p, n) = token;
    count(p)
  :: else
  fi
}

/* One node is told the token. */
inline tell(p, n) {
  node_acquire(n, p, client[p].token);
  client[p].pending = client[p].pending & ~bit_of(n);
  if
  :: !ok -> give_up(p, 7)
  :: ok && client[p].pending == 0 -> begin_hold(p)
  :: else
  fi
}

/* majority-renewals.ts: only nodes that still hold it count. One node may be out of reach. */
inline renew(p, skipped) {
  votes = 0;
  for (i : 0 .. NODES - 1) {
    if :: i != skipped && node[i].owner == p + 1 -> votes++; node[i].left = LEASE :: else fi
  }
  if :: votes >= NEEDED -> client[p].left = LEASE :: else -> give_up(p, 7) fi
}
