// Command buildkit makes the kit of a build with the cuda tag and prints its
// folder. make csrc runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"github.com/weirgo/weir/csrc/kit"
)

func main() {
	parent := flag.String("o", "build/csrc", "folder that the kit comes below")
	arch := flag.String("arch", runtime.GOARCH, "amd64 or arm64")
	compiler := flag.String("cc", "gcc", "C compiler for that architecture, with its arguments")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	k, err := kit.Make(ctx, *parent, *arch, strings.Fields(*compiler))
	if err != nil {
		fmt.Fprintln(os.Stderr, "buildkit:", err)
		os.Exit(1)
	}
	fmt.Println(k.Root())
}
