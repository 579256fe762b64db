package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgo/weir/internal/hostblas"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Weir, Go and the BLAS library",
		Long: `Print the versions of Weir, Go and the BLAS library of the host device, one a
line. They belong into reports of errors.

  $ weir version`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			blas := hostblas.Default()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "weir %s\n%s %s/%s\n%s %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, blas.Name(), cmp.Or(strings.TrimPrefix(blas.Version(), blas.Name()+" "), "of unknown version"))
			return err
		},
	}
}

// version is that of the module that the command was built from, as Go knows
// it: a tag, a revision, or "(devel)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
