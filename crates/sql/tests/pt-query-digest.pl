# Fingerprints by the installed pt-query-digest: statements on standard input, one a line, with \n, \t
# and \\ for these bytes; their fingerprints on standard output in the same form.
#   perl pt-query-digest.pl /usr/bin/pt-query-digest < statements
use strict;
use warnings;

my $tool = shift or die "the path of pt-query-digest is missing\n";
require $tool;    # It runs its main program only where nobody loads it.
my $rewriter = QueryRewriter->new( QueryParser => QueryParser->new() );
my %byte = ( n => "\n", t => "\t", r => "\r" );
my %mark = reverse %byte;
while ( my $line = <STDIN> ) {
    chomp $line;
    $line =~ s/\\(.)/$byte{$1} || $1/ge;
    my $fingerprint = $rewriter->fingerprint($line);
    $fingerprint =~ s/([\\\n\t\r])/'\\' . ( $mark{$1} || $1 )/ge;
    print "$fingerprint\n";
}
