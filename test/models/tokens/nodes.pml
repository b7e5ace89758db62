/* What a node does: the scripts for the plain lock. */

/* plain.include.lua, in_the_way and enter: the answer in `ok`, the token in `token`. */
inline node_acquire(n, p, least_token) {
  ok = (node[n].owner == NONE || node[n].owner == p + 1);
  if
  :: ok ->
    token = max(clock_of(n), least_token);
#ifndef CLOCK_WITHOUT_FENCE
    if :: node[n].fence >= token -> token = node[n].fence + STRIDE :: else fi;
#endif
    node[n].fence = token;
    node[n].owner = p + 1;
    node[n].left = LEASE
  :: else
  fi
}

/* release.lua */
inline node_release(n, p, last) {
  if
  :: node[n].owner == p + 1 ->
    node[n].owner = NONE;
    node[n].left = 0;
#ifdef RELEASE_LOWERS_THE_FENCE
    node[n].fence = 0
#else
#ifndef RELEASE_WITHOUT_TOKEN
    node[n].fence = max(node[n].fence, last)
#endif
#endif
  :: else
  fi
}

/* The node comes back empty. charters.ts, quarantine: it votes again when every lease from before has ended. */
inline restart(n) {
  node[n].fence = 0;
  node[n].owner = NONE;
  node[n].left = 0;
#ifndef RESTARTED_NODES_VOTE_AT_ONCE
  node[n].barred = LEASE
#endif
}

inline tick() {
  for (i : 0 .. NODES - 1) {
    node[i].fence = less(node[i].fence, UNIT);
    /* The clock has passed it. */
    if :: node[i].fence < clock_of(i) -> node[i].fence = 0 :: else fi;
    node[i].left = less(node[i].left, 1);
    node[i].barred = less(node[i].barred, 1);
    if :: node[i].left == 0 -> node[i].owner = NONE :: else fi
  };
  for (i : 0 .. 1) {
    client[i].token = less(client[i].token, UNIT);
    client[i].left = less(client[i].left, 1)
  };
  for (i : 0 .. 5) { vote[i] = less(vote[i], UNIT) };
  last_token = less(last_token, UNIT)
}
