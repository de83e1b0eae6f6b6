package service

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// edit changes the specification.
func edit(f func(*corev1.ServiceSpec)) change { return func(svc *corev1.Service) { f(&svc.Spec) } }

// editPort changes the only port.
func editPort(f func(*corev1.ServicePort)) change {
	return func(svc *corev1.Service) { f(&svc.Spec.Ports[0]) }
}

func withSourceRanges(ranges ...string) change {
	return edit(func(s *corev1.ServiceSpec) { s.LoadBalancerSourceRanges = ranges })
}

func withExternalIP(ip string) change {
	return edit(func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{ip} })
}

func withAnnotation(key, value string) change {
	return func(svc *corev1.Service) { metav1.SetMetaDataAnnotation(&svc.ObjectMeta, key, value) }
}

func withClass(class string) change {
	return edit(func(s *corev1.ServiceSpec) { s.LoadBalancerClass = &class })
}

func withExternalName(name string) change {
	return edit(func(s *corev1.ServiceSpec) { s.ExternalName = name })
}

// creates are new Services and how they are answered: with a cause, or, where path is empty, with success.
var creates = map[string]struct {
	changes []change
	reason  metav1.CauseType
	path    string
}{
	// metadata
	"name of 63":           {changes: []change{named(strings.Repeat("a", 63))}},
	"name of 64":           {[]change{named(strings.Repeat("a", 64))}, invalid, "metadata.name"},
	"upper-case name":      {[]change{named("Web")}, invalid, "metadata.name"},
	"name with a dot":      {[]change{named("web.a")}, invalid, "metadata.name"},
	"name with a digit":    {changes: []change{named("1web")}},
	"no name":              {[]change{named("")}, required, "metadata.name"},
	"bad label":            {[]change{func(svc *corev1.Service) { svc.Labels = map[string]string{"a b": ""} }}, invalid, "metadata.labels"},
	"bad annotation":       {[]change{withAnnotation("a b", "")}, invalid, "metadata.annotations"},
	"bad finalizer":        {[]change{func(svc *corev1.Service) { svc.Finalizers = []string{"mine"} }}, invalid, "metadata.finalizers[0]"},
	"finalizer":            {changes: []change{func(svc *corev1.Service) { svc.Finalizers = []string{"example.com/mine", "kubernetes"} }}},
	"topology annotations": {changes: []change{withAnnotation("service.kubernetes.io/topology-mode", "Auto"), withAnnotation("service.kubernetes.io/topology-aware-hints", "Auto")}},
	"topology annotations, contradictory": {[]change{withAnnotation("service.kubernetes.io/topology-mode", "Auto"), withAnnotation("service.kubernetes.io/topology-aware-hints", "x")},
		invalid, "metadata.annotations[service.kubernetes.io/topology-mode]"},

	// type
	"unknown type":    {[]change{ofType("Bogus")}, notSupported, "spec.type"},
	"lower-case type": {[]change{ofType("clusterip")}, notSupported, "spec.type"},

	// clusterIP, clusterIPs
	"free address":              {changes: []change{withIPs("10.96.0.10")}},
	"last address":              {changes: []change{withIPs("10.96.0.254")}},
	"network address":           {[]change{withIPs("10.96.0.0")}, invalid, "spec.clusterIPs"},
	"broadcast address":         {[]change{withIPs("10.96.0.255")}, invalid, "spec.clusterIPs"},
	"address out of range":      {[]change{withIPs("10.97.0.1")}, invalid, "spec.clusterIPs"},
	"address in use":            {[]change{withIPs("10.96.0.99")}, invalid, "spec.clusterIPs"},
	"not an address":            {[]change{withIPs("abc")}, invalid, "spec.clusterIPs[0]"},
	"lower-case none":           {[]change{withIPs("none")}, invalid, "spec.clusterIPs[0]"},
	"leading zeros":             {[]change{withIPs("10.096.0.10")}, invalid, "spec.clusterIPs[0]"},
	"IPv4-mapped address":       {[]change{withIPs("::ffff:10.96.0.10")}, invalid, "spec.clusterIPs[0]"},
	"other family":              {[]change{withIPs("fd00::1")}, invalid, "spec.clusterIPs[0]"},
	"headless":                  {changes: []change{withIPs("None")}},
	"headless and an address":   {[]change{withIPs("None", "10.96.0.10"), withPolicy(prefer)}, invalid, "spec.clusterIPs"},
	"clusterIPs alone":          {[]change{edit(func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.96.0.10"} })}, invalid, "spec.clusterIPs"},
	"clusterIPs differ":         {[]change{withIPs("10.96.0.10"), edit(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.11" })}, invalid, "spec.clusterIPs"},
	"clusterIP alone":           {changes: []change{edit(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.10" })}},
	"empty element":             {[]change{withIPs("10.96.0.10", "")}, invalid, "spec.clusterIPs[1]"},
	"two of one family":         {[]change{withIPs("10.96.0.10", "10.96.0.11"), withPolicy(prefer)}, invalid, "spec.clusterIPs"},
	"three addresses":           {[]change{withIPs("10.96.0.10", "fd00::1", "10.96.0.11"), withPolicy(prefer)}, invalid, "spec.clusterIPs"},
	"headless NodePort":         {[]change{ofType(typeNodePort), withIPs("None")}, invalid, "spec.clusterIPs[0]"},
	"headless LoadBalancer":     {[]change{ofType(typeLoadBalancer), withIPs("None")}, invalid, "spec.clusterIPs[0]"},
	"ExternalName with address": {[]change{ofType(typeExternalName), withIPs("10.96.0.10")}, forbidden, "spec.clusterIPs"},
	"ExternalName with None":    {[]change{ofType(typeExternalName), withIPs("None")}, forbidden, "spec.clusterIPs"},

	// ipFamilies, ipFamilyPolicy (more on clusters of two families in TestDualStackCreate)
	"unknown family":                {[]change{withFamilies("IPv5")}, notSupported, "spec.ipFamilies[0]"},
	"family twice":                  {[]change{withFamilies(v4, v4), withPolicy(prefer)}, duplicate, "spec.ipFamilies[1]"},
	"family not configured":         {[]change{withFamilies(v6)}, invalid, "spec.ipFamilies[0]"},
	"preferred family missing":      {[]change{withFamilies(v4, v6), withPolicy(prefer)}, invalid, "spec.ipFamilies[1]"},
	"headless, family missing":      {[]change{withIPs("None"), withFamilies(v6)}, invalid, "spec.ipFamilies[0]"},
	"address of the wrong family":   {[]change{withIPs("10.96.0.10"), withFamilies(v6)}, invalid, "spec.clusterIPs[0]"},
	"unknown policy":                {[]change{withPolicy("Bogus")}, notSupported, "spec.ipFamilyPolicy"},
	"empty policy":                  {[]change{withPolicy("")}, notSupported, "spec.ipFamilyPolicy"},
	"dual stack on one family":      {[]change{withPolicy(dual)}, invalid, "spec.ipFamilyPolicy"},
	"dual stack preferred":          {changes: []change{withPolicy(prefer)}},
	"ExternalName with families":    {[]change{ofType(typeExternalName), withFamilies(v4)}, forbidden, "spec.ipFamilies"},
	"ExternalName with policy":      {[]change{ofType(typeExternalName), withPolicy(single)}, forbidden, "spec.ipFamilyPolicy"},
	"two families and SingleStack":  {[]change{withFamilies(v4, v6), withPolicy(single)}, invalid, "spec.ipFamilyPolicy"},
	"two addresses and SingleStack": {[]change{withIPs("10.96.0.10", "fd00::1"), withPolicy(single)}, invalid, "spec.ipFamilyPolicy"},

	// ports
	"no ports":                 {[]change{withPorts()}, required, "spec.ports"},
	"headless without ports":   {changes: []change{withPorts(), withIPs("None")}},
	"ExternalName, no ports":   {changes: []change{withPorts(), ofType(typeExternalName)}},
	"port 0":                   {[]change{withPorts(corev1.ServicePort{})}, invalid, "spec.ports[0].port"},
	"port 65535":               {changes: []change{withPorts(corev1.ServicePort{Port: 65535})}},
	"port 65536":               {[]change{withPorts(corev1.ServicePort{Port: 65536})}, invalid, "spec.ports[0].port"},
	"port -1":                  {[]change{withPorts(corev1.ServicePort{Port: -1})}, invalid, "spec.ports[0].port"},
	"same port and protocol":   {[]change{withPorts(corev1.ServicePort{Name: "a", Port: 80}, corev1.ServicePort{Name: "b", Port: 80})}, duplicate, "spec.ports[1]"},
	"same port, two protocols": {changes: []change{withPorts(corev1.ServicePort{Name: "a", Port: 53}, corev1.ServicePort{Name: "b", Port: 53, Protocol: "UDP"})}},
	"unknown protocol":         {[]change{withPorts(corev1.ServicePort{Port: 80, Protocol: "ICMP"})}, notSupported, "spec.ports[0].protocol"},
	"SCTP":                     {changes: []change{withPorts(corev1.ServicePort{Port: 80, Protocol: "SCTP"})}},
	"second port unnamed":      {[]change{withPorts(corev1.ServicePort{Name: "a", Port: 80}, corev1.ServicePort{Port: 81})}, required, "spec.ports[1].name"},
	"port name twice":          {[]change{withPorts(corev1.ServicePort{Name: "a", Port: 80}, corev1.ServicePort{Name: "a", Port: 81})}, duplicate, "spec.ports[1].name"},
	"port name of 63":          {changes: []change{withPorts(corev1.ServicePort{Name: strings.Repeat("1", 63), Port: 80})}},
	"port name of 64":          {[]change{withPorts(corev1.ServicePort{Name: strings.Repeat("a", 64), Port: 80})}, invalid, "spec.ports[0].name"},
	"port name with a dot":     {[]change{withPorts(corev1.ServicePort{Name: "a.b", Port: 80})}, invalid, "spec.ports[0].name"},
	"target port 65536":        {[]change{withPorts(corev1.ServicePort{Port: 80, TargetPort: intstr.FromInt32(65536)})}, invalid, "spec.ports[0].targetPort"},
	"target name of 15":        {changes: []change{withPorts(corev1.ServicePort{Port: 80, TargetPort: intstr.FromString(strings.Repeat("a", 15))})}},
	"target name of 16":        {[]change{withPorts(corev1.ServicePort{Port: 80, TargetPort: intstr.FromString(strings.Repeat("a", 16))})}, invalid, "spec.ports[0].targetPort"},
	"target name of digits":    {[]change{withPorts(corev1.ServicePort{Port: 80, TargetPort: intstr.FromString("80")})}, invalid, "spec.ports[0].targetPort"},
	"headless target port":     {changes: []change{withIPs("None"), withPorts(corev1.ServicePort{Port: 80, TargetPort: intstr.FromInt32(8080)})}},
	"h2c":                      {changes: []change{editPort(func(p *corev1.ServicePort) { p.AppProtocol = new("kubernetes.io/h2c") })}},
	"empty app protocol":       {[]change{editPort(func(p *corev1.ServicePort) { p.AppProtocol = new("") })}, invalid, "spec.ports[0].appProtocol"},
	"bad app protocol":         {[]change{editPort(func(p *corev1.ServicePort) { p.AppProtocol = new("a/b/c") })}, invalid, "spec.ports[0].appProtocol"},

	// nodePort
	"first node port":            {changes: []change{ofType(typeNodePort), withNodePort(firstPort)}},
	"last node port":             {changes: []change{ofType(typeNodePort), withNodePort(lastPort)}},
	"node port below the range":  {[]change{ofType(typeNodePort), withNodePort(firstPort - 1)}, invalid, "spec.ports[0].nodePort"},
	"node port above the range":  {[]change{ofType(typeNodePort), withNodePort(lastPort + 1)}, invalid, "spec.ports[0].nodePort"},
	"negative node port":         {[]change{ofType(typeNodePort), withNodePort(-1)}, invalid, "spec.ports[0].nodePort"},
	"node port in use":           {[]change{ofType(typeNodePort), withNodePort(30050)}, invalid, "spec.ports[0].nodePort"},
	"node port in use, UDP":      {[]change{ofType(typeNodePort), withPorts(corev1.ServicePort{Port: 80, Protocol: "UDP", NodePort: 30050})}, invalid, "spec.ports[0].nodePort"},
	"ClusterIP with node port":   {[]change{withNodePort(30001)}, forbidden, "spec.ports[0].nodePort"},
	"ExternalName and node port": {[]change{ofType(typeExternalName), withNodePort(30001)}, forbidden, "spec.ports[0].nodePort"},
	"node port for two ports":    {[]change{ofType(typeNodePort), withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30001}, corev1.ServicePort{Name: "b", Port: 81, NodePort: 30001})}, invalid, "spec.ports[1].nodePort"},

	// selector
	"bad selector key":     {[]change{edit(func(s *corev1.ServiceSpec) { s.Selector = map[string]string{"a b": "c"} })}, invalid, "spec.selector"},
	"bad selector value":   {[]change{edit(func(s *corev1.ServiceSpec) { s.Selector = map[string]string{"a": "b c"} })}, invalid, "spec.selector"},
	"empty selector value": {changes: []change{edit(func(s *corev1.ServiceSpec) { s.Selector = map[string]string{"a": ""} })}},

	// session affinity
	"unknown affinity": {[]change{affinity("Cookie", 1)}, notSupported, "spec.sessionAffinity"},
	"timeout 0":        {[]change{affinity("ClientIP", 0)}, invalid, "spec.sessionAffinityConfig.clientIP.timeoutSeconds"},
	"timeout 1":        {changes: []change{affinity("ClientIP", 1)}},
	"timeout 86400":    {changes: []change{affinity("ClientIP", 86400)}},
	"timeout 86401":    {[]change{affinity("ClientIP", 86401)}, invalid, "spec.sessionAffinityConfig.clientIP.timeoutSeconds"},

	// external IPs
	"external IP":                 {changes: []change{withExternalIP("192.0.2.1")}},
	"external IP in the range":    {changes: []change{withExternalIP("10.96.0.99")}},
	"unspecified external IP":     {[]change{withExternalIP("0.0.0.0")}, invalid, "spec.externalIPs[0]"},
	"loopback external IP":        {[]change{withExternalIP("::1")}, invalid, "spec.externalIPs[0]"},
	"link-local external IP":      {[]change{withExternalIP("169.254.1.1")}, invalid, "spec.externalIPs[0]"},
	"local multicast external IP": {[]change{withExternalIP("224.0.0.1")}, invalid, "spec.externalIPs[0]"},
	"multicast external IP":       {changes: []change{withExternalIP("224.0.1.5")}},
	"external IP, leading zeros":  {[]change{withExternalIP("192.000.2.1")}, invalid, "spec.externalIPs[0]"},
	"external CIDR":               {[]change{withExternalIP("192.0.2.0/24")}, invalid, "spec.externalIPs[0]"},

	// external name
	"external name missing":     {[]change{ofType(typeExternalName), withExternalName("")}, required, "spec.externalName"},
	"external name of a dot":    {[]change{ofType(typeExternalName), withExternalName(".")}, required, "spec.externalName"},
	"external name with a dot":  {changes: []change{ofType(typeExternalName), withExternalName("db.example.com.")}},
	"upper-case external name":  {[]change{ofType(typeExternalName), withExternalName("DB.example.com")}, invalid, "spec.externalName"},
	"external name of 254":      {[]change{ofType(typeExternalName), withExternalName(strings.Repeat("a", 254))}, invalid, "spec.externalName"},
	"external name, other type": {changes: []change{withExternalName("A_b!")}},
	"ExternalName and policy":   {[]change{ofType(typeExternalName), withExternal(policyCluster)}, invalid, "spec.externalTrafficPolicy"},
	"ExternalName and LB class": {[]change{ofType(typeExternalName), withClass("x")}, forbidden, "spec.loadBalancerClass"},
	"ExternalName and bad policy": {[]change{ofType(typeExternalName), edit(func(s *corev1.ServiceSpec) {
		s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy("x"))
	})}, notSupported, "spec.internalTrafficPolicy"},

	// traffic policies and distribution
	"external policy, ClusterIP": {[]change{withExternal(policyCluster)}, invalid, "spec.externalTrafficPolicy"},
	"unknown external policy":    {[]change{ofType(typeNodePort), withExternal("local")}, notSupported, "spec.externalTrafficPolicy"},
	"unknown internal policy":    {[]change{edit(func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy("")) })}, notSupported, "spec.internalTrafficPolicy"},
	"distribution":               {changes: []change{edit(func(s *corev1.ServiceSpec) { s.TrafficDistribution = new("PreferSameNode") })}},
	"unknown distribution":       {[]change{edit(func(s *corev1.ServiceSpec) { s.TrafficDistribution = new("Bogus") })}, notSupported, "spec.trafficDistribution"},

	// load balancer
	"class":                         {changes: []change{ofType(typeLoadBalancer), withClass("example.com/internal-vip")}},
	"bad class":                     {[]change{ofType(typeLoadBalancer), withClass("a b")}, invalid, "spec.loadBalancerClass"},
	"class, NodePort":               {[]change{ofType(typeNodePort), withClass("x")}, forbidden, "spec.loadBalancerClass"},
	"node-port choice, ClusterIP":   {[]change{edit(func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(false) })}, forbidden, "spec.allocateLoadBalancerNodePorts"},
	"source ranges":                 {changes: []change{ofType(typeLoadBalancer), withSourceRanges(" 10.0.0.0/8 ", "fd00::/8")}},
	"source address":                {[]change{ofType(typeLoadBalancer), withSourceRanges("10.0.0.1")}, invalid, "spec.LoadBalancerSourceRanges[0]"},
	"source range, host bits":       {[]change{ofType(typeLoadBalancer), withSourceRanges("10.0.0.1/8")}, invalid, "spec.LoadBalancerSourceRanges[0]"},
	"source ranges, ClusterIP":      {[]change{withSourceRanges("10.0.0.0/8")}, forbidden, "spec.LoadBalancerSourceRanges"},
	"source annotation":             {changes: []change{ofType(typeLoadBalancer), withAnnotation(corev1.AnnotationLoadBalancerSourceRangesKey, "10.0.0.0/8, fd00::/8")}},
	"empty source annotation":       {changes: []change{ofType(typeLoadBalancer), withAnnotation(corev1.AnnotationLoadBalancerSourceRangesKey, " ")}},
	"bad source annotation":         {[]change{ofType(typeLoadBalancer), withAnnotation(corev1.AnnotationLoadBalancerSourceRangesKey, "x")}, invalid, "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"},
	"source annotation, ClusterIP":  {[]change{withAnnotation(corev1.AnnotationLoadBalancerSourceRangesKey, "10.0.0.0/8")}, forbidden, "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"},
	"load balancer IP of any text":  {changes: []change{edit(func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "not an ip" })}},
	"health check port":             {changes: []change{ofType(typeLoadBalancer), withExternal(policyLocal), withHealthCheck(30001)}},
	"health check port in use":      {[]change{ofType(typeLoadBalancer), withExternal(policyLocal), withHealthCheck(30050)}, invalid, "spec.healthCheckNodePort"},
	"health check port 80":          {[]change{ofType(typeLoadBalancer), withExternal(policyLocal), withHealthCheck(80)}, invalid, "spec.healthCheckNodePort"},
	"health check on own node port": {[]change{ofType(typeLoadBalancer), withExternal(policyLocal), withNodePort(30001), withHealthCheck(30001)}, invalid, "spec.healthCheckNodePort"},
	"health check, Cluster":         {[]change{ofType(typeLoadBalancer), withHealthCheck(30001)}, invalid, "spec.healthCheckNodePort"},
	"health check, NodePort":        {[]change{ofType(typeNodePort), withExternal(policyLocal), withHealthCheck(30001)}, invalid, "spec.healthCheckNodePort"},
}

func withHealthCheck(port int32) change {
	return edit(func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = port })
}

// TestCreateRules creates each Service beside one that holds an address and a node port, in earnest and as a dry run. A
// refusal and a dry run leave nothing allocated.
func TestCreateRules(t *testing.T) {
	for name, test := range creates {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.mustCreate(named("first"), ofType(typeNodePort), withIPs("10.96.0.99"), withNodePort(30050))
			for _, dryRun := range []bool{true, false} {
				svc := newService(test.changes...)
				c.rules.Default(svc)
				tx, err := c.rules.Create(svc, dryRun)
				if test.path != "" {
					if tx != nil {
						t.Error("a refused create has a transaction")
					}
					wantRefused(t, err, test.reason, test.path)
				} else if err != nil {
					t.Fatalf("dry run %v: %v", dryRun, err)
				}
				if test.path != "" || dryRun {
					c.wantInUse(1, 0, 1)
				}
				if tx != nil {
					tx.Rollback()
					c.wantInUse(1, 0, 1)
				}
			}
		})
	}
}

// TestOlderVersions holds the rules that newer versions of Kubernetes have changed.
func TestOlderVersions(t *testing.T) {
	c := newVersionedCluster(t, "1.31.0")
	_, err := c.create(named("1web"))
	wantRefused(t, err, invalid, "metadata.name")
	_, err = c.create(edit(func(s *corev1.ServiceSpec) { s.TrafficDistribution = new("PreferSameZone") }))
	wantRefused(t, err, notSupported, "spec.trafficDistribution")
	sloppy := c.mustCreate(named("sloppy"), withIPs("10.096.000.010"))
	if got := sloppy.Spec.ClusterIP; got != "10.096.000.010" {
		t.Errorf("clusterIP = %s, want it as it was written", got)
	}
	_, err = c.create(named("canonical"), withIPs("10.96.0.10"))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	c.mustPatch("sloppy", withExternalIP("192.0.2.1"))
	c.delete("sloppy")
	c.wantInUse(0, 0, 0)
}

// TestStoredValuesMayStay: values that older rules let pass do not block an update of something else.
func TestStoredValuesMayStay(t *testing.T) {
	old := newVersionedCluster(t, "1.31")
	stored := old.mustCreate(ofType(typeLoadBalancer), withIPs("10.096.0.10"), withExternalIP("192.000.2.1"), withSourceRanges("10.0.0.1/8 "))
	c := newCluster(t)
	if err := c.rules.Adopt(stored); err != nil {
		t.Fatal(err)
	}
	c.wantInUse(1, 0, 1)
	c.objects[stored.Name] = stored
	c.mustPatch(stored.Name, func(svc *corev1.Service) { svc.Labels = map[string]string{"a": "b"} })
	_, err := c.patch(stored.Name, withExternalIP("192.000.2.2"))
	wantRefused(t, err, invalid, "spec.externalIPs[0]")
	_, err = c.patch(stored.Name, withSourceRanges("10.0.0.2/8"))
	wantRefused(t, err, invalid, "spec.LoadBalancerSourceRanges[0]")
}
