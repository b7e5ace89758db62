const CRLF = '\r\n';

/**
 * Where the RESP2 or RESP3 reply that starts at `start` ends, or undefined if a part of it is still to come.
 */
export function replyEnd(bytes: Buffer, start: number): number | undefined {
  let at = start;
  for (let open = 1; open > 0; open--) {
    const lineEnd = bytes.indexOf(CRLF, at);
    if (lineEnd === -1) return undefined;
    const type = String.fromCharCode(bytes[at] ?? 0);
    const size = Number(bytes.toString('latin1', at + 1, lineEnd));
    at = lineEnd + CRLF.length;
    // A size of -1 is RESP2's null: nothing follows.
    if (size === -1) continue;
    if ('$=!'.includes(type)) at += size + CRLF.length;
    else if ('*~>'.includes(type)) open += size;
    else if (type === '%') open += 2 * size;
    // An attribute comes before the value that it belongs to.
    else if (type === '|') open += 2 * size + 1;
  }
  return at <= bytes.length ? at : undefined;
}

/** Whether a whole reply is a message of a subscription: an array in RESP2, a push in RESP3. */
export const isMessage = (reply: Buffer) =>
  /^[*>]3\r\n\$(7\r\nmessage|8\r\nsmessage)\r\n/.test(reply.toString('latin1', 0, 24));
