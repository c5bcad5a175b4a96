// What a broker must do for amqplib, the Node.js client.

import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { once } from 'node:events';
import amqp from 'amqplib';
import { URL_, VHOST, check, main, unique } from './suite.mjs';

/** Runs `body` with a connection of its own. The error event is for those who wait for it. */
async function withConnection(body, url = URL_) {
  const connection = await amqp.connect(url);
  connection.on('error', () => {});
  try {
    return await body(connection);
  } finally {
    await connection.close().catch(() => {}); // a check may have had it closed
  }
}

function withChannel(body) {
  return withConnection(async (connection) => body(await open(connection), connection));
}

async function open(connection) {
  const channel = await connection.createConfirmChannel();
  channel.on('error', () => {});
  return channel;
}

async function exclusiveQueue(channel, options = {}) {
  return (await channel.assertQueue(unique('queue'), { exclusive: true, ...options })).queue;
}

async function exchange(channel, type) {
  return (await channel.assertExchange(unique(type), type, { autoDelete: true, durable: false })).exchange;
}

async function publish(channel, queue, ...bodies) {
  for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body));
  await channel.waitForConfirms();
}

async function drain(channel, queue) {
  const bodies = [];
  for (let m = await channel.get(queue); m; m = await channel.get(queue)) {
    channel.ack(m);
    bodies.push(m.content.toString());
  }
  return bodies;
}

async function ready(channel, queue) {
  return (await channel.checkQueue(queue)).messageCount;
}

/** A list that deliveries are pushed to, and a promise of its having some length. */
function inbox() {
  const items = [];
  let waiting = [];
  return {
    items,
    push(item) {
      items.push(item);
      waiting = waiting.filter(({ length, resolve }) => items.length < length || resolve());
    },
    reach: (length) =>
      new Promise((resolve) => (items.length >= length ? resolve() : waiting.push({ length, resolve }))),
  };
}

/** `action` must have its channel closed with this code and text; another channel must go on working. */
async function refused(code, text, action) {
  await withConnection(async (connection) => {
    const [channel, witness] = [await open(connection), await open(connection)];
    const closed = once(channel, 'error');
    action(channel)?.catch?.(() => {});
    const [error] = await closed;
    equal(error.code, code);
    ok(error.message.endsWith(`with message "${text}"`), error.message);
    await exclusiveQueue(witness);
  });
}

check('declare bind publish get', () =>
  withChannel(async (channel) => {
    const [source, queue] = [await exchange(channel, 'direct'), await exclusiveQueue(channel)];
    await channel.bindQueue(queue, source, 'red');
    channel.publish(source, 'red', Buffer.from('kept'), { persistent: true });
    channel.publish(source, 'blue', Buffer.from('dropped'));
    await channel.waitForConfirms();
    const message = await channel.get(queue);
    equal(message.content.toString(), 'kept');
    equal(message.fields.redelivered, false);
    equal(message.fields.routingKey, 'red');
    channel.ack(message);
    equal(await channel.get(queue), false);
    await channel.unbindQueue(queue, source, 'red');
  }));

check('every publish is confirmed', () =>
  withChannel(async (channel) => {
    const queue = await exclusiveQueue(channel);
    const answers = Array.from({ length: 1000 }, (_, n) =>
      new Promise((resolve, reject) =>
        channel.sendToQueue(queue, Buffer.from(`${n}`), {}, (error) => (error ? reject(error) : resolve()))));
    await Promise.all(answers);
    equal(await ready(channel, queue), 1000);
  }));

check('mandatory unroutable message is returned then acknowledged', () =>
  withChannel(async (channel) => {
    const order = [];
    channel.on('return', (message) => order.push(message));
    const key = unique('nowhere');
    channel.publish('', key, Buffer.from('lost'), { mandatory: true }, (error) => order.push(error));
    await channel.waitForConfirms();
    const [returned, answer] = order;
    equal(returned.fields.replyCode, 312);
    equal(returned.fields.replyText, 'NO_ROUTE');
    equal(returned.fields.routingKey, key);
    equal(returned.content.toString(), 'lost');
    equal(answer, null);
  }));

check('prefetch bounds unacknowledged deliveries', () =>
  withChannel(async (channel) => {
    const [queue, got] = [await exclusiveQueue(channel), inbox()];
    await publish(channel, queue, ...'0123456789');
    await channel.prefetch(3);
    await channel.consume(queue, got.push);
    await got.reach(3);
    equal(await ready(channel, queue), 7);
    equal(got.items.length, 3);
    channel.ack(got.items[2], true);
    await got.reach(6);
    equal(await ready(channel, queue), 4);
    equal(got.items.length, 6);
  }));

check('nack returns messages to their place', () =>
  withChannel(async (channel) => {
    const queue = await exclusiveQueue(channel);
    await publish(channel, queue, '1', '2', '3');
    await channel.get(queue);
    await channel.get(queue);
    channel.nackAll(true);
    const seen = [await channel.get(queue), await channel.get(queue), await channel.get(queue)];
    deepEqual(seen.map((m) => [m.content.toString(), m.fields.redelivered]), [['1', true], ['2', true], ['3', false]]);
    channel.reject(seen[0], false);
    channel.ackAll();
    equal(await channel.get(queue), false);
  }));

check('recover redelivers unacknowledged messages', () =>
  withChannel(async (channel) => {
    const queue = await exclusiveQueue(channel);
    await publish(channel, queue, '1');
    await channel.get(queue);
    await channel.recover();
    equal((await channel.get(queue)).fields.redelivered, true);
  }));

check('topic patterns route', () =>
  withChannel(async (channel) => {
    const source = await exchange(channel, 'topic');
    const [one, many] = [await exclusiveQueue(channel), await exclusiveQueue(channel)];
    await channel.bindQueue(one, source, '*.b');
    await channel.bindQueue(many, source, 'a.#');
    for (const key of ['a', 'a.b', 'a.b.c', 'x.b']) channel.publish(source, key, Buffer.from(key));
    await channel.waitForConfirms();
    deepEqual(await drain(channel, one), ['a.b', 'x.b']);
    deepEqual(await drain(channel, many), ['a', 'a.b', 'a.b.c']);
  }));

check('headers match all and any', () =>
  withChannel(async (channel) => {
    const source = await exchange(channel, 'headers');
    const [all, any] = [await exclusiveQueue(channel), await exclusiveQueue(channel)];
    await channel.bindQueue(all, source, '', { 'x-match': 'all', a: 1, b: 'x' });
    await channel.bindQueue(any, source, '', { 'x-match': 'any', a: 1, b: 'x' });
    for (const [body, headers] of [['both', { a: 1, b: 'x' }], ['one', { a: 1 }], ['none', { a: 2 }]])
      channel.publish(source, '', Buffer.from(body), { headers });
    await channel.waitForConfirms();
    deepEqual(await drain(channel, all), ['both']);
    deepEqual(await drain(channel, any), ['both', 'one']);
  }));

check('exchange binds to exchange', () =>
  withChannel(async (channel) => {
    const [source, target] = [await exchange(channel, 'direct'), await exchange(channel, 'fanout')];
    const queue = await exclusiveQueue(channel);
    await channel.bindQueue(queue, target, '');
    await channel.bindExchange(target, source, 'key');
    channel.publish(source, 'key', Buffer.from('through'));
    await channel.waitForConfirms();
    deepEqual(await drain(channel, queue), ['through']);
    await channel.unbindExchange(target, source, 'key');
  }));

check('soft errors have their exact texts', () =>
  withChannel(async (owner) => {
    const name = unique('soft');
    const queue = await exclusiveQueue(owner);
    const { queue: plain } = await owner.assertQueue(unique('plain'), { durable: false, autoDelete: true });
    await refused(404, `NOT_FOUND - no queue '${name}' in vhost '${VHOST}'`, (c) => c.checkQueue(name));
    await refused(404, `NOT_FOUND - no exchange '${name}' in vhost '${VHOST}'`, (c) => c.checkExchange(name));
    await refused(404, `NOT_FOUND - no exchange '${name}' in vhost '${VHOST}'`, (c) => {
      c.publish(name, 'key', Buffer.from('x'));
    });
    await refused(406, 'PRECONDITION_FAILED - unknown delivery tag 7', (c) => c.ack({ fields: { deliveryTag: 7 } }));
    await refused(
      406,
      `PRECONDITION_FAILED - inequivalent arg 'durable' for queue '${plain}' in vhost '${VHOST}': ` +
        "received 'true' but current is 'false'",
      (c) => c.assertQueue(plain, { durable: true, autoDelete: true }),
    );
    await refused(
      405,
      `RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '${queue}' in vhost '${VHOST}'. ` +
        'It could be originally declared on another connection or the exclusive property value ' +
        'does not match that of the original declaration.',
      (c) => c.checkQueue(queue),
    );
    await owner.deleteQueue(plain);
  }));

check('hard error closes the connection and a new one works', async () => {
  await withConnection(async (connection) => {
    const channel = await open(connection);
    const closed = new Promise((resolve) => connection.on('close', resolve));
    const queue = await exclusiveQueue(channel);
    await channel.consume(queue, () => {}, { consumerTag: 'mine' });
    const failed = once(connection, 'error');
    channel.consume(queue, () => {}, { consumerTag: 'mine' }).catch(() => {});
    const [error] = await failed;
    equal(error.code, 530);
    ok(error.message.includes("NOT_ALLOWED - attempt to reuse consumer tag 'mine'"), error.message);
    await closed;
  });
  await withChannel(async (channel) => {
    const queue = await exclusiveQueue(channel);
    await publish(channel, queue, 'after');
    deepEqual(await drain(channel, queue), ['after']);
  });
});

check('wrong password is refused', async () => {
  const url = new URL(URL_);
  url.password = 'wrong';
  await rejects(amqp.connect(url.href), /ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN/);
});

check('bodies of any size come back whole', () =>
  withChannel(async (channel) => {
    const queue = await exclusiveQueue(channel);
    for (const size of [0, 1, 4088, 4089, 131_064, 131_065, 1 << 20]) {
      const body = Buffer.from(Array.from({ length: size }, (_, n) => n % 251));
      channel.sendToQueue(queue, body);
      await channel.waitForConfirms();
      const message = await channel.get(queue, { noAck: true });
      ok(message.content.equals(body), `body of ${size} bytes`);
    }
  }));

const PLAIN_HEADERS = {
  true: true,
  int: -5,
  long: 2 ** 40,
  double: 1.5,
  string: 'größe',
  void: null,
  array: [1, 'two', [true, null]],
  table: { nested: { deep: 'er' } },
  bytes: Buffer.from([0, 255]),
  time: { '!': 'timestamp', value: 1_700_000_000 },
  decimal: { '!': 'decimal', value: { digits: 314, places: 2 } },
};

const SIZED_HEADERS = { int8: -8, uint8: 200, int16: -300, uint16: 60_000, int32: -70_000, uint32: 4e9, float: 0.5 };

check('properties and every header type round trip', () =>
  withChannel(async (channel) => {
    const queue = await exclusiveQueue(channel);
    const sized = Object.entries(SIZED_HEADERS).map(([type, value]) => [type, { '!': type, value }]);
    const options = {
      contentType: 'text/plain',
      contentEncoding: 'utf-8',
      deliveryMode: 2,
      priority: 5,
      correlationId: 'c',
      replyTo: 'r',
      expiration: '60000',
      messageId: 'm',
      timestamp: 1_700_000_000,
      type: 't',
      appId: 'a',
    };
    const headers = { ...PLAIN_HEADERS, ...Object.fromEntries(sized) };
    channel.sendToQueue(queue, Buffer.from('x'), { ...options, headers });
    const { properties } = await channel.get(queue);
    for (const [name, value] of Object.entries(options)) equal(properties[name], value, name);
    deepEqual({ ...properties.headers }, { ...PLAIN_HEADERS, ...SIZED_HEADERS });
  }));

check('consumer is told when its queue is deleted', () =>
  withConnection(async (connection) => {
    const [channel, other, got] = [await open(connection), await open(connection), inbox()];
    const queue = await exclusiveQueue(channel);
    await channel.consume(queue, got.push);
    await other.deleteQueue(queue);
    await got.reach(1);
    deepEqual(got.items, [null]);
  }));

check('cancelled consumer gets nothing more', () =>
  withChannel(async (channel) => {
    const [queue, got] = [await exclusiveQueue(channel), inbox()];
    const { consumerTag } = await channel.consume(queue, got.push, { noAck: true });
    ok(consumerTag.startsWith('amq.ctag-'), consumerTag);
    await publish(channel, queue, 'before');
    await got.reach(1);
    await channel.cancel(consumerTag);
    await publish(channel, queue, 'after');
    equal(await ready(channel, queue), 1);
    equal(got.items.length, 1);
  }));

check('requests are answered directly across connections', () =>
  withConnection((asking) =>
    withConnection(async (answering) => {
      const [client, server] = [await open(asking), await open(answering)];
      const { queue } = await server.assertQueue('', { exclusive: false, autoDelete: true, durable: false });
      const replies = inbox();
      await server.consume(queue, (request) => {
        const { replyTo, correlationId } = request.properties;
        server.sendToQueue(replyTo, Buffer.from(request.content.toString().toUpperCase()), { correlationId });
        server.ack(request);
      });
      await client.consume('amq.rabbitmq.reply-to', (reply) => replies.push(reply), { noAck: true });
      for (let n = 0; n < 100; n += 1) {
        const options = { replyTo: 'amq.rabbitmq.reply-to', correlationId: String(n) };
        client.sendToQueue(queue, Buffer.from(`n${n}`), options);
      }
      await replies.reach(100);
      for (const { properties, content } of replies.items) {
        equal(content.toString(), `N${properties.correlationId}`);
      }
      equal(new Set(replies.items.map(({ properties }) => properties.correlationId)).size, 100);
    }),
  ));

check('small frames are negotiated', () => {
  const url = new URL(URL_);
  url.searchParams.set('frameMax', '4096');
  return withConnection(async (connection) => {
    const channel = await open(connection);
    const queue = await exclusiveQueue(channel);
    await publish(channel, queue, 'x'.repeat(20_000));
    deepEqual(await drain(channel, queue), ['x'.repeat(20_000)]);
  }, url.href);
});

check('idle connection survives on heartbeats', () => {
  const url = new URL(URL_);
  url.searchParams.set('heartbeat', '1');
  return withConnection(async (connection) => {
    await new Promise((resolve) => setTimeout(resolve, 4000));
    await exclusiveQueue(await open(connection));
  }, url.href);
}, 20);

await main();
