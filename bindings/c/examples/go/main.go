// IDs in Go, by cgo.
//
//	go run .
package main

/*
#cgo LDFLAGS: -lringflake
#include <stdlib.h>
#include <ringflake.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"log"
	"runtime"
	"strconv"
	"unsafe"
)

// Generator makes unique IDs, for any number of goroutines.
type Generator struct {
	generator *C.ringflake_generator
}

// Open opens the ID space of this name on this machine.
func Open(name string) (*Generator, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	ids := new(Generator)
	err := check(func() C.ringflake_status {
		return C.ringflake_open_local(text, &ids.generator)
	})
	return ids, err
}

// Take returns an ID.
func (ids *Generator) Take() (uint64, error) {
	var id C.uint64_t
	err := check(func() C.ringflake_status { return C.ringflake_take(ids.generator, &id) })
	return uint64(id), err
}

// Close frees the generator. No other goroutine may be using it.
func (ids *Generator) Close() {
	C.ringflake_close(ids.generator)
	ids.generator = nil
}

// The error belongs to the thread of the call, so the goroutine must stay on it.
func check(call func() C.ringflake_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if call() != C.RINGFLAKE_OK {
		return errors.New(C.GoString(C.ringflake_last_error()))
	}
	return nil
}

func main() {
	ids, err := Open("orders")
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	for i := 0; i < 3; i++ {
		id, err := ids.Take()
		if err != nil {
			log.Print(err)
			return
		}
		// The text of an ID is its number in base 32.
		fmt.Println(id, strconv.FormatUint(id, 32))
	}
}
