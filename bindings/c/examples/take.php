<?php
// IDs in PHP, by its extension FFI: php take.php
//
// FFI reads declarations without a preprocessor: these are the ones of ringflake.h that are
// used here. An enum is an int.
$ringflake = FFI::cdef('
    typedef struct ringflake_generator ringflake_generator;
    int ringflake_open_local(const char *name, ringflake_generator **generator);
    int ringflake_take(const ringflake_generator *generator, uint64_t *id);
    int ringflake_to_text(uint64_t id, char *text, size_t size);
    void ringflake_close(ringflake_generator *generator);
    const char *ringflake_last_error(void);
', 'libringflake.so');

function check(int $status): void
{
    global $ringflake;
    if ($status !== 0) {
        throw new RuntimeException($ringflake->ringflake_last_error());
    }
}

$ids = $ringflake->new('ringflake_generator *');
check($ringflake->ringflake_open_local('orders', FFI::addr($ids)));

$id = $ringflake->new('uint64_t');
$text = $ringflake->new('char[14]');
check($ringflake->ringflake_take($ids, FFI::addr($id)));
check($ringflake->ringflake_to_text($id->cdata, $text, FFI::sizeof($text)));
// Integers of PHP are signed: half of the IDs are negative, unless `id-width = positive`.
echo $id->cdata, ' ', FFI::string($text), "\n";

$ringflake->ringflake_close($ids);
