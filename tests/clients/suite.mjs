// Runs named checks one after the other, each bounded in time, and reports one line per check.
// Owns the report format and the time limits; knows no AMQP client library.

import { randomUUID } from 'node:crypto';

export const URL_ = process.env.AMQP_URL ?? 'amqp://guest:guest@127.0.0.1:5672/%2f';
export const VHOST = decodeURIComponent(new URL(URL_).pathname.slice(1)) || '/';

const checks = [];

/** Registers an async function as a check named by a phrase, which may take that many seconds. */
export function check(name, body, seconds = 10) {
  checks.push({ name: name.replaceAll(' ', '_'), body, seconds });
}

/** A name no other run uses, so that checks share no state on the broker. */
export function unique(word) {
  return `check.${word}.${randomUUID().slice(-12)}`;
}

function bounded(promise, seconds) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('took too long')), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs every check, or only those named as arguments, and exits. */
export async function main() {
  const wanted = new Set(process.argv.slice(2));
  let passed = 0;
  let failed = 0;
  for (const { name, body, seconds } of checks) {
    if (wanted.size && !wanted.has(name)) continue;
    try {
      await bounded(body(), seconds);
      passed += 1;
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${String(error.message).replaceAll('\n', ' ')}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed || !passed ? 1 : 0);
}
