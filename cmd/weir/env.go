package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgo/weir/internal/cudaenv"
)

// variables are the environment variables that Weir reads.
var variables = []struct{ name, meaning string }{
	{"WEIR_BLAS", "BLAS library of the host device: auto (as if empty), openblas, gonum, or a shared library's file"},
	{"WEIR_BLAS_DIR", "folder in which OpenBLAS is searched first"},
	{"WEIR_DEBUG", "words, separated by commas: leaks (remember where what outlives the runtime was made), report (print errors with all their causes), stack (print the stack of an internal error)"},
}

func newEnvCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print the environment variables that Weir reads",
		Long: `Print the environment variables that Weir reads, with their values and meanings,
as lines that a POSIX shell evaluates:

  $ weir env >weir.sh
  $ . ./weir.sh

Where headers of CUDA and a C compiler are, it also prints what the go command
needs to build with the CUDA devices, for Weir or for a module that imports it;
else a comment says what is missing. In a module that imports Weir:

  $ go get -tool github.com/weirgo/weir/cmd/weir
  $ eval "$(go tool weir env)"
  $ go build -tags cuda .`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			for _, v := range variables {
				if _, err := fmt.Fprintf(out, "# %s\nexport %s=%s\n", v.meaning, v.name, quote(os.Getenv(v.name))); err != nil {
					return err
				}
			}
			settings, err := cudaenv.Find(cmd.Context(), "", os.Environ())
			if cmd.Context().Err() != nil {
				return cmd.Context().Err()
			}
			if err != nil {
				_, err = fmt.Fprintf(out, "# no builds with -tags cuda: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n# "))
				return err
			}
			for _, v := range settings.Variables {
				if _, err := fmt.Fprintf(out, "# %s\nexport %s=%s\n", v.Meaning, v.Name, quote(v.Value)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// quote writes a word of a POSIX shell.
func quote(value string) string {
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
