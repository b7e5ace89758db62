/** What to try, ready to paste. */
export function guide(url: string): string {
  const rush = (path: string) =>
    `curl -s -o /dev/null -X POST ${url}/reset; seq 200 | xargs -P 50 -I{} curl -s -o /dev/null -w '%{http_code}\\n' -X POST ${url}/${path} | sort | uniq -c`;

  return `Ticket shop: open ${url} in a browser, press "200 buyers" and watch the line. The locks alone: ${url}/locks

One buyer:
  curl -X POST ${url}/buy             with the lock
  curl -X POST ${url}/buy-unlocked    without it
  curl ${url}/seats
  curl ${url}/health                  how the locks are: 200, or 503 while there are none
  curl -X POST ${url}/reset

200 buyers at 100 seats (201 = bought, 410 = sold out, 409 = the lock stayed busy):
  ${rush('buy')}
  ${rush('buy-unlocked')}
`;
}
