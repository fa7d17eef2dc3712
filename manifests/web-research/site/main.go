// Command site is a search server and a page to try the agent on without the web.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8888", "`host:port` to serve on; port 0 is a free one")
	flag.Parse()
	if err := serve(context.Background(), *listen); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// serve prints where it listens, then serves until the program ends.
func serve(ctx context.Context, address string) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	server := &http.Server{Handler: pages(l.Addr().String()), ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(l)
}
