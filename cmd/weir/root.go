package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Contract tensors on devices",
		Long: `weir contracts tensors in NumPy's .npy files, on a GPU or on the host device.

For example, to multiply two matrices and look at the product:

  $ python -c 'import numpy as np; np.save("A", np.ones((2, 3))); np.save("B", np.ones((3, 4)))'
  $ weir einsum 'ij,jk->ik' A.npy B.npy -o C.npy
  $ weir einsum 'ij->ij' C.npy

The exit status is 0 on success, 1 on a failure, 2 when the command line is
wrong, and 128 plus the signal's number after an interrupt. Results go to
standard output; errors and progress to standard error.`,
		Version:       version(),
		SilenceErrors: true, // app.run reports them
		SilenceUsage:  true,
	}
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(
		newDevicesCommand(),
		newEinsumCommand(a),
		newIsingCommand(a),
		newBenchCommand(),
		newEnvCommand(),
		newVersionCommand(),
	)
	return root
}

// newHelpCommand is cobra's, except that an unknown command is an error.
func newHelpCommand() *cobra.Command {
	var about *cobra.Command
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		Long: `Explain a command, for example:

  $ weir help einsum`,
		Args: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("unknown command %q", strings.Join(args, " "))
			}
			about = found
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about.InitDefaultHelpFlag() // cobra adds it only to the command that runs
			return about.Help()
		},
	}
}

// noArguments is for commands that take flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("argument %q; expected none", args[0])
	}
	return nil
}
