// Command leases prints IDs that it makes by itself, one a line, from leases of
// `ringflake serve`.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	url := flag.String("url", "http://localhost:7464", "the server")
	tokenFile := flag.String("token-file", "", "a file with a token of the role lease")
	namespace := flag.String("namespace", "orders", "the namespace")
	secretFile := flag.String("secret-file", "", "its secret, as 32 hexadecimal digits; none for plain IDs")
	duration := flag.Duration("duration", 2*time.Minute, "how far ahead of the clock to be covered, in whole seconds")
	count := flag.Int("n", 0, "how many IDs; 0 for no end")
	rate := flag.Int("rate", 10000, "how many a second")
	flag.Parse()
	if *rate < 1 {
		log.Fatal("-rate has to be at least 1")
	}

	token, err := os.ReadFile(*tokenFile)
	if err != nil {
		log.Fatal(err)
	}
	var secret *Sparx64
	if *secretFile != "" {
		if secret, err = readSecret(*secretFile); err != nil {
			log.Fatal(err)
		}
	}
	client := &Client{
		URL:   *url,
		Token: strings.TrimSpace(string(token)),
		HTTP:  &http.Client{Timeout: 10 * time.Second},
	}
	host, _ := os.Hostname()
	holder := fmt.Sprintf("go/%.40s/%d", host, os.Getpid())
	generator := NewGenerator(client, *namespace, holder, *duration, secret)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() {
		ended <- generator.Run(ctx)
		stop()
	}()
	err = print(ctx, generator, *count, *rate)
	stop()
	for _, err := range []error{err, <-ended} {
		if err != nil {
			log.Fatal(err)
		}
	}
}

// portions is how many there are in a second.
const portions = 100

// pace says how many IDs each portion has.
type pace struct {
	// How many a second.
	rate int
	// What no portion had yet, in hundredths of an ID.
	due int
}

// next returns how many IDs the next portion has: over a second they are the rate.
func (pace *pace) next() int {
	pace.due += pace.rate
	count := pace.due / portions
	pace.due %= portions
	return count
}

// print writes so many IDs, in portions, as the signed numbers that databases keep.
func print(ctx context.Context, generator *Generator, count, rate int) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	portion := time.NewTicker(time.Second / portions)
	defer portion.Stop()
	pace := pace{rate: rate}
	for printed := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-portion.C:
		}
		for i := pace.next(); i > 0; i-- {
			id, err := generator.Next()
			if err == ErrNoLease {
				break
			}
			if _, err := fmt.Fprintln(out, int64(id)); err != nil {
				return err
			}
			if printed++; printed == count {
				return nil
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func readSecret(path string) (*Sparx64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 16 {
		return nil, fmt.Errorf("%s does not have 32 hexadecimal digits", path)
	}
	return NewSparx64(*(*[16]byte)(key)), nil
}
