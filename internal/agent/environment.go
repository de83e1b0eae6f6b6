package agent

import (
	"context"
	"slices"
	"strings"
)

// environment sorts the variables of a process. ConfigVariable is not among them: no Service has a part in it.
func environment(variables []string) []string {
	told := slices.DeleteFunc(slices.Clone(variables), func(v string) bool { return strings.HasPrefix(v, ConfigVariable+"=") })
	slices.Sort(told)
	return told
}

// Environment returns the environment that the container of the pod was started with, "NAME=value" and sorted, but for ConfigVariable.
func (c *Client) Environment(ctx context.Context) (variables []string, err error) {
	err = c.command(ctx, PathEnviron, nil, nil, &variables)
	return variables, err
}
