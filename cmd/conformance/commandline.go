package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// noArguments refuses arguments, and says which commands there are where one may have been meant.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return fmt.Errorf("%s takes flags only, and %q is none: see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("%s has no command %q (did you mean %s?)", cmd.CommandPath(), args[0], strings.Join(near, " or "))
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("%s has no command %q; there are %s", cmd.CommandPath(), args[0], strings.Join(names, ", "))
}

// parsed is what Go's parsers say before the reason.
var parsed = regexp.MustCompile(`strconv\.\w+: parsing "(?:[^"\\]|\\.)*": |time: `)

// plainFlagError takes from the message of a flag what only a Go programmer knows.
func plainFlagError(_ *cobra.Command, err error) error {
	return errors.New(parsed.ReplaceAllString(err.Error(), ""))
}
