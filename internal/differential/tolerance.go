package differential

import (
	"regexp"
	"strings"
)

// Tolerance is a class of differences that was decided, and that stays.
type Tolerance struct {
	// Name is for the count of a run.
	Name string
	// Case names the case of fixtures/differential that shows it, or is empty. Why says in a sentence what both do.
	Case, Why string
	// Ends says that the two servers hold other objects afterwards, so that a story cannot go on.
	Ends bool

	covers func(d *Told) bool
}

// Tolerances are all of them.
var Tolerances = []Tolerance{
	{
		Name: "status-creates", Case: "status-creates", Ends: true, Why: "A write to the status of a Service that does not exist is answered with 404 by the reference. kube-apiserver creates it, or says what else is wrong.",
		covers: func(d *Told) bool {
			return d.What == "code" && d.Reference == "404" && strings.Contains(d.Request.Request, "/status") && (strings.HasPrefix(d.Request.Request, "PUT ") || d.Request.Type == applyPatch)
		},
	},
	{
		Name: "server-error-for-a-bad-request", Case: "apply-without-typed-form", Why: "What cannot be read is answered with 400 or 422 by the reference, and with 500 by kube-apiserver.",
		covers: func(d *Told) bool {
			return d.What == "code" && (d.Reference == "400" || d.Reference == "422") && d.Real == "500"
		},
	},
	{
		Name: "external-name-with-node-port", Ends: true, Why: "A node port of a Service of type ExternalName is refused by the reference, and accepted by kube-apiserver.",
		covers: func(d *Told) bool {
			return strings.Contains(d.Request.Request, "/services") && (d.What == "causes" || d.What == "code" && d.Reference == "422") && onlyNodePorts(d)
		},
	},
	{
		Name: "external-name-with-cluster-ip", Case: "externalname-with-cluster-ip", Ends: true, Why: "An update to type ExternalName with a cluster IP is refused by the reference. kube-apiserver stores the address.",
		covers: func(d *Told) bool {
			put := strings.HasPrefix(d.Request.Request, "PUT ") && strings.Contains(d.Request.Body, "ExternalName") && strings.Contains(d.Request.Body, `"clusterIP"`)
			return put && (d.What == "code" && d.Reference == "422" && d.Real == "200" || d.What == "causes" && strings.Contains(d.Reference, "spec.clusterIPs") && d.Real == "[]")
		},
	},
	{
		Name: "items-without-kind", Why: "The items of a list of metadata have no kind on the reference.",
		covers: func(d *Told) bool {
			return strings.HasPrefix(d.Request.Accept, metadatasType) && (strings.HasSuffix(d.What, ".kind") || strings.HasSuffix(d.What, ".apiVersion"))
		},
	},
	{
		Name: "dry-run-takes-nothing", Ends: true, Why: "In a dry run, kube-apiserver shows a node port or an address that it could not give. The reference shows one that it could.",
		covers: func(d *Told) bool {
			return inDryRun(d) && (strings.HasSuffix(d.What, "odePort") || strings.HasPrefix(d.What, "spec.clusterIP"))
		},
	},
	{
		Name: "dry-run-address-in-use", Why: "A dry run with an address in use is refused by the reference. kube-apiserver looks only whether the address lies in the range.",
		covers: func(d *Told) bool {
			return inDryRun(d) && strings.Contains(d.Request.Body, `"clusterIP`) && d.What == "code" && d.Reference == "422" && strings.HasPrefix(d.Real, "20")
		},
	},
	{
		Name: "dry-run-of-several-ranges", Why: "A dry run of a Service is refused by kube-apiserver now and then while there are several ServiceCIDRs: it asks any one of them. It does so before it finds that there is the Service.",
		covers: func(d *Told) bool {
			return inDryRun(d) && strings.Contains(d.Request.Request, "/services") && d.What == "code" && (strings.HasPrefix(d.Reference, "20") || d.Reference == "409") && d.Real == "422"
		},
	},
	{
		Name: "columns-of-ip-addresses", Case: "ipaddress-table", Why: "A Table of IPAddresses has a column for the age on the reference. kube-apiserver has that cell in rows, and no column.",
		covers: func(d *Told) bool {
			return strings.Contains(d.Request.Request, addressesPath) && d.What == "columnDefinitions"
		},
	},
	{
		Name: "dry-run-node-port-order", Case: "dry-run-node-port-order", Ends: true, Why: "In a dry run of an update, kube-apiserver may draw a node port that the update names after it, and refuse that one alone.",
		covers: func(d *Told) bool {
			return inDryRun(d) && !strings.HasPrefix(d.Request.Request, "POST ") && d.Real != "[]" && (d.What == "causes" && noOtherCause(d.Real) || d.What == "code" && d.Real == "422" && strings.Count(d.Request.Body, `"nodePort"`) > 1)
		},
	},
	{
		Name: "dry-run-node-port", Ends: true, Why: "A dry run with a node port outside of the range is refused by the reference. kube-apiserver looks at the range only when it allocates.",
		covers: func(d *Told) bool {
			named := strings.Contains(d.Request.Body, `"nodePort"`) && (d.What == "code" && d.Reference == "422" || d.What == "causes" && noOtherCause(d.Reference))
			forHealth := strings.Contains(d.Request.Body, `"healthCheckNodePort"`) && d.What == "causes" && d.Reference == "[]"
			return inDryRun(d) && (named || forHealth)
		},
	},
	{
		Name: "ports-of-ingress-points", Ends: true, Why: "The ports of ingress points are validated by the reference, and not by kube-apiserver.",
		covers: func(d *Told) bool {
			return strings.Contains(d.Request.Body, `"ingress"`) && strings.Contains(d.Request.Body, `"ports"`) && strings.Contains(d.Request.Request, "/status") && (d.What == "causes" && strings.Contains(d.Reference, "].ports[") || d.What == "code" && d.Reference == "422")
		},
	},
	{
		Name: "index-of-node-port", Why: "Where a node port of several cannot be given, the reference names it with its index. kube-apiserver names another one.",
		covers: func(d *Told) bool {
			return d.What == "causes" && d.Real != "[]" && noOtherCause(d.Real) && noOtherCause(d.Reference)
		},
	},
	{
		Name: "families-of-headless", Ends: true, Why: "The primary family of a headless Service can be changed on kube-apiserver alone.",
		covers: func(d *Told) bool {
			return d.What == "causes" && d.Reference == `["spec.ipFamilies[0]"]` && d.Real == "[]" || d.What == "code" && d.Reference == "422" && d.Real == "200" && strings.Contains(d.Request.Body, "ipFamilies")
		},
	},
	{
		Name: "limit-of-old-list", Why: "A list with a limit and resourceVersion 0 is answered in parts by the reference, and whole by kube-apiserver. A server may ignore the limit.",
		covers: func(d *Told) bool {
			return strings.Contains(d.Request.Request, "limit=") && strings.Contains(d.Request.Request, "resourceVersion=0") && (d.What == "items" || d.What == "rows" || strings.HasPrefix(d.What, "metadata"))
		},
	},
	{
		Name: "cell-of-unready-endpoints", Why: "In a Table, Endpoints without a ready address are shown as <none> by the reference, and as nothing by kube-apiserver.",
		covers: func(d *Told) bool {
			return strings.HasPrefix(d.Request.Accept, tableType) && strings.Contains(d.Request.Request, "/endpoints") && d.Real == `""`
		},
	},
	{
		Name: "conditions-of-services", Ends: true, Why: "The conditions of a Service are validated by the reference, and not by kube-apiserver.",
		covers: func(d *Told) bool {
			return strings.Contains(d.Request.Body, `"conditions"`) && strings.Contains(d.Request.Request, "/status") && (d.What == "causes" || d.What == "code") && (d.Reference == "422" || strings.Contains(d.Reference, "status.conditions"))
		},
	},
	{
		Name: "policy-of-external-name", Case: "status-write-of-externalname", Why: "The answer to a write of the status or to a deletion of a Service of type ExternalName shows an internalTrafficPolicy, on kube-apiserver alone.",
		covers: func(d *Told) bool {
			return !strings.HasPrefix(d.Request.Request, "GET ") && d.What == "spec.internalTrafficPolicy" && d.Reference == "null"
		},
	},
	{
		Name: "allocation-first", Why: "The reference tries to allocate before it has found all that is wrong, or the other way round. One error of several is told.",
		covers: func(d *Told) bool {
			return d.What == "causes" && strings.Contains(d.Reference+d.Real, "spec.clusterIPs") && (d.Reference == `["spec.clusterIPs"]` || d.Real == `["spec.clusterIPs"]`)
		},
	},
	{
		Name: "address-beside-none", Why: "An update that makes a Service headless and asks for a second family is refused by both. kube-apiserver has given it an address beside None by then, and tells of that, too.",
		covers: func(d *Told) bool {
			return d.What == "causes" && d.Reference == "[]" && strings.Contains(d.Real, `"spec.clusterIPs"`) && strings.Contains(d.Request.Body, `"None"`)
		},
	},
}

func inDryRun(d *Told) bool { return strings.Contains(d.Request.Request, "dryRun=All") }

// onlyNodePorts reports whether the reference alone names node ports, and a Service of type ExternalName is sent.
func onlyNodePorts(d *Told) bool {
	if d.What == "code" {
		// An apply or a patch may leave the type to the stored Service.
		return d.Real != "500" && strings.Contains(d.Request.Body, `"nodePort"`) && (strings.Contains(d.Request.Body, "ExternalName") || strings.HasPrefix(d.Request.Request, "PATCH ") && !strings.Contains(d.Request.Body, `"type"`))
	}
	return d.Real == "[]" && noOtherCause(d.Reference) // the type may be that of the stored Service
}

// noOtherCause reports whether all causes are node ports.
func noOtherCause(causes string) bool {
	return strings.Trim(nodePortCause.ReplaceAllString(causes, ""), "[],") == ""
}

var nodePortCause = regexp.MustCompile(`"spec\.ports\[\d+\]\.nodePort"`)

// toleranceOf is what covers a difference; nil if nothing does.
func toleranceOf(d *Told) *Tolerance {
	for i := range Tolerances {
		if Tolerances[i].covers(d) {
			return &Tolerances[i]
		}
	}
	return nil
}
