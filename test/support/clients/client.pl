# Core modules of Perl: creates a task, then answers its callback. URL USER REF; the secret in API_SECRET.
# HTTP::Tiny sends no type but octet-stream; the timestamp carries a fraction and the signature is upper case.
use strict;
use warnings;
use Digest::SHA qw(sha1_hex);
use HTTP::Tiny;

my ($url, $user, $ref) = @ARGV;
my $secret = $ENV{API_SECRET};
my $http = HTTP::Tiny->new(keep_alive => 1);

sub send_op {
    my ($op) = @_;
    my $body = "{\n\t\"ops\": [ $op ]\n}\n";
    my $time = time() . '.25';
    my $signature = uc sha1_hex($time . $secret . $body . $secret);
    my $answer = $http->post("$url/api/1/json/$user/$time/$signature", { content => $body });
    die "$answer->{status} $answer->{content}\n" unless $answer->{success};
    print "$answer->{content}\n";
}

my $common = qq("obj":"task", "conv_id":1234, "ref":"$ref");
send_op(qq({"type":"create", $common, "data":{"name":"\\u041a\\u0438\\u0457\\u0432","amount":10.0}}));
send_op(qq({"type":"modify", $common, "data":{"paid":true}}));
