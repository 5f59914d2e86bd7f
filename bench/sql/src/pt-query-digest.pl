# Fingerprints by the installed pt-query-digest, timed by itself.
#   perl pt-query-digest.pl /usr/bin/pt-query-digest STATEMENTS
# STATEMENTS is a file with one statement a line. For every line on standard input all of them are
# fingerprinted once; then the CPU time that it took is printed, in seconds.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

my ( $tool, $file ) = @ARGV;
require $tool;    # It runs its main program only where nobody loads it.
my $rewriter = QueryRewriter->new( QueryParser => QueryParser->new() );
open my $in, '<', $file or die "$file: $!\n";
my @statements = <$in>;
chomp @statements;
$| = 1;
while (<STDIN>) {
    my $begin = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
    my $bytes = 0;
    $bytes += length $rewriter->fingerprint($_) for @statements;
    printf "%.9f %d\n", clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $begin, $bytes;
}
