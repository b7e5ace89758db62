import { execFileSync } from 'node:child_process';

/** A certificate that nothing trusts, and its key. */
export function certificate(): { key: string; cert: string } {
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  const pem = execFileSync('openssl', [...made, '-keyout', '-', '-out', '-'], { stdio: 'pipe' }).toString();
  return { key: pem, cert: pem };
}
