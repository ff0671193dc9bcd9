// node-redis against a server of IDs: what it answers, and that no ID comes twice.

import assert from 'node:assert/strict';
import { createClient, RESP_TYPES } from 'redis';

const [address, path] = process.argv.slice(2);
const ways = [
    { url: `redis://${address}`, RESP: 2 },
    { url: `redis://${address}`, RESP: 3, name: 'tests' },
    { socket: { path }, RESP: 2 },
    { socket: { path }, RESP: 3 },
    { url: `redis://${address}`, database: 1 },
];

const ids = [];
let raws = 0;
for (const way of ways) {
    const client = await createClient(way).connect();
    assert.equal(await client.ping(), 'PONG');
    assert.match(await client.info(), /server_name:ringflake/);

    // As a number of JavaScript an ID of 64 bits is not exact: INCR is for other languages,
    // or read as a string.
    const exact = client.withTypeMapping({ [RESP_TYPES.NUMBER]: String });
    ids.push(String(await exact.incr('node-redis')));
    assert.equal(typeof (await client.incr('node-redis')), 'number');

    // Strings are exact. These are one pipeline.
    const batches = [];
    for (let batch = 0; batch < 20; batch += 1) {
        batches.push(client.lPopCount('node-redis', 100));
        batches.push(client.lPop('node-redis').then((id) => [id]));
    }
    for (const batch of await Promise.all(batches)) ids.push(...batch);

    const unsigned = ['RINGFLAKE.TAKE', 'node-redis', '10', 'FORMAT', 'unsigned'];
    for (const id of await client.sendCommand(unsigned)) {
        ids.push(String(BigInt.asIntN(64, BigInt(id))));
    }

    const seen = new Set();
    for (const id of ids.slice(-100)) {
        const answer = await exact.sendCommand(['RINGFLAKE.INSPECT', 'node-redis', id]);
        const entries = Array.isArray(answer)
            ? answer.flatMap((key, at) => (at % 2 ? [] : [[key, answer[at + 1]]]))
            : Object.entries(answer);
        const parts = Object.fromEntries(entries);
        assert.deepEqual(Object.keys(parts).sort(), ['node', 'sequence', 'tick', 'unix_ms']);
        seen.add(`${parts.tick} ${parts.node} ${parts.sequence}`);
    }
    assert.equal(seen.size, 100);
    raws += seen.size;

    await assert.rejects(client.get('x'), /unknown command 'GET'/);
    await assert.rejects(client.incrBy('node-redis', 5), /LPOP name count/);
    await client.close();
}
assert.equal(ids.length, ways.length * (1 + 20 * 101 + 10));
assert.equal(new Set(ids).size, ids.length, 'an ID came twice');
console.log(`node-redis: ${ids.length} IDs, no two alike, ${raws} of them inspected`);
