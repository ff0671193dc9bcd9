<?php
// phpredis against a server of IDs: what it answers, and that no ID comes twice.

declare(strict_types=1);

function check(bool $holds, string $what): void
{
    if (!$holds) {
        fwrite(STDERR, "phpredis: $what\n");
        exit(1);
    }
}

[, $address, $socket] = $argv;
[$host, $port] = explode(':', $address);
$ids = [];
foreach ([[$host, (int) $port], [$socket, 0]] as [$where, $number]) {
    $client = new Redis();
    $client->connect($where, $number, 5.0);
    check($client->ping() === true, 'no PONG');
    check($client->info()['server_name'] === 'ringflake', 'another server');

    $ids[] = $client->incr('phpredis');
    $ids[] = (int) $client->lPop('phpredis');
    // As a method it takes a count from phpredis 6 on.
    foreach ($client->rawCommand('LPOP', 'phpredis', '1000') as $id) {
        $ids[] = (int) $id;
    }
    $pipeline = $client->multi(Redis::PIPELINE);
    for ($i = 0; $i < 1000; $i++) {
        $pipeline->incr('phpredis');
    }
    array_push($ids, ...$pipeline->exec());
    foreach ($client->rawCommand('RINGFLAKE.TAKE', 'phpredis', '10') as $id) {
        $ids[] = (int) $id;
    }
    $raws = [];
    foreach (array_slice($ids, -200) as $id) {
        $flat = $client->rawCommand('RINGFLAKE.INSPECT', 'phpredis', (string) $id);
        check(count($flat) === 8 && $flat[0] === 'tick', 'not inspected');
        $raws["$flat[1] $flat[5] $flat[7]"] = true;
    }
    check(count($raws) === 200, 'two IDs are of one place');
    check($client->get('x') === false, 'GET is answered');
    check(str_contains($client->getLastError(), 'unknown command'), 'GET has no error');
    $client->close();
}
check(count($ids) === 2 * 2012, count($ids) . ' IDs');
check(count(array_unique($ids)) === count($ids), 'an ID came twice');
echo 'phpredis ', phpversion('redis'), ': ', count($ids), " IDs, no two alike\n";
