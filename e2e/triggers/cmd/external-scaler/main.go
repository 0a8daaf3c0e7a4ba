// An external scaler on KEDA's published stubs. Its value is the number in a file, whose name the trigger's metadata
// has; it is active above zero. With certificates it speaks TLS, and answers only those that the authority knows.
//
// usage: external-scaler ADDRESS [CERTIFICATE KEY AUTHORITY]
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

type scaler struct {
	pb.UnimplementedExternalScalerServer
}

func number(ref *pb.ScaledObjectRef) (int64, error) {
	text, err := os.ReadFile(ref.ScalerMetadata["file"])
	if err != nil {
		return 0, status.Error(codes.NotFound, "there is no such file")
	}
	value, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, status.Error(codes.InvalidArgument, "it holds no number")
	}
	return value, nil
}

func (scaler) IsActive(_ context.Context, ref *pb.ScaledObjectRef) (*pb.IsActiveResponse, error) {
	value, err := number(ref)
	return &pb.IsActiveResponse{Result: value > 0}, err
}

func (scaler) StreamIsActive(ref *pb.ScaledObjectRef, stream pb.ExternalScaler_StreamIsActiveServer) error {
	was := false
	for stream.Context().Err() == nil {
		value, _ := number(ref)
		if active := value > 0; active != was {
			was = active
			if err := stream.Send(&pb.IsActiveResponse{Result: active}); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return stream.Context().Err()
}

func (scaler) GetMetricSpec(_ context.Context, ref *pb.ScaledObjectRef) (*pb.GetMetricSpecResponse, error) {
	target, err := strconv.ParseFloat(ref.ScalerMetadata["target"], 64)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "target is no number")
	}
	spec := &pb.MetricSpec{MetricName: ref.Namespace + "-" + ref.Name, TargetSizeFloat: target}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{spec}}, nil
}

func (scaler) GetMetrics(_ context.Context, request *pb.GetMetricsRequest) (*pb.GetMetricsResponse, error) {
	value, err := number(request.ScaledObjectRef)
	if err != nil {
		return nil, err
	}
	metric := &pb.MetricValue{MetricName: request.MetricName, MetricValueFloat: float64(value)}
	return &pb.GetMetricsResponse{MetricValues: []*pb.MetricValue{metric}}, nil
}

// Those that have a certificate of the authority may ask.
func guarded(certificate, key, authority string) (grpc.ServerOption, error) {
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	known, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(known)
	config := &tls.Config{
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}
	return grpc.Creds(credentials.NewTLS(config)), nil
}

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var options []grpc.ServerOption
	if len(os.Args) == 5 {
		option, err := guarded(os.Args[2], os.Args[3], os.Args[4])
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, option)
	}
	server := grpc.NewServer(options...)
	pb.RegisterExternalScalerServer(server, scaler{})
	log.Fatal(server.Serve(listener))
}
