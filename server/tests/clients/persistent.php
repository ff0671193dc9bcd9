<?php
// Predis and phpredis with persistent connections, against a server of IDs: one request of
// PHP's own web server, which serves all of them in one process.
//
//     REDIS=HOST:PORT php -S HOST:PORT persistent.php
//
// /predis and /phpredis print the number of the connection, and then IDs.

declare(strict_types=1);

// Predis of Debian is older than this PHP.
error_reporting(E_ALL & ~E_DEPRECATED);

function check(bool $holds, string $what): void
{
    if (!$holds) {
        throw new Exception($what);
    }
}

// The error of a call.
function refused(callable $call): string
{
    try {
        $call();
    } catch (Exception $error) {
        return $error->getMessage();
    }
    throw new Exception('no error');
}

function predis(string $host, int $port): array
{
    require_once 'Predis/Autoloader.php';
    Predis\Autoloader::register();
    $client = new Predis\Client(['host' => $host, 'port' => $port, 'persistent' => true]);
    $number = $client->executeRaw(['CLIENT', 'ID']);
    $ids = [$client->incr('persistent')];
    array_push($ids, ...$client->pipeline(function ($pipeline) {
        for ($i = 0; $i < 1000; $i++) {
            $pipeline->incr('persistent');
        }
    }));
    array_push($ids, ...$client->transaction(function ($transaction) {
        $transaction->incr('persistent');
        $transaction->lpop('persistent');
    }));
    $error = refused(fn () => $client->transaction(function ($transaction) {
        $transaction->incr('persistent');
        $transaction->get('x');
    }));
    check(str_contains($error, 'unknown command'), $error);
    $error = refused(fn () => $client->incr('app:orders'));
    check(str_contains($error, 'resp.key-prefix = "app:"'), $error);
    $ids[] = $client->incr('persistent');
    return [$number, ...$ids];
}

function phpredis(string $host, int $port): array
{
    $client = new Redis();
    $client->pconnect($host, $port, 10.0);
    $number = $client->rawCommand('CLIENT', 'ID');
    $ids = [$client->incr('persistent')];
    $pipeline = $client->multi(Redis::PIPELINE);
    for ($i = 0; $i < 1000; $i++) {
        $pipeline->incr('persistent');
    }
    array_push($ids, ...$pipeline->exec());
    array_push($ids, ...$client->multi()->incr('persistent')->lPop('persistent')->exec());
    check($client->multi()->incr('persistent')->get('x') === false, 'GET is queued');
    check(str_contains($client->getLastError(), 'unknown command'), $client->getLastError());
    $client->discard();
    $ids[] = $client->incr('persistent');
    return [$number, ...$ids];
}

[$host, $port] = explode(':', getenv('REDIS'));
try {
    $lines = match ($_SERVER['REQUEST_URI']) {
        '/predis' => predis($host, (int) $port),
        '/phpredis' => phpredis($host, (int) $port),
    };
    header('Content-Type: text/plain');
    echo implode("\n", $lines), "\n";
} catch (Throwable $error) {
    http_response_code(500);
    echo $error, "\n";
}
