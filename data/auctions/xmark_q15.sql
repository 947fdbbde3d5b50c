-- The emphasized keywords in lists within lists, of the annotations of closed auctions.
-- XMark, Query 15, as SQL over the streams of the document; keywords with the names of what is around them are declared here.
-- Nothing is kept, and every punctuation goes on.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE keyword (
  word STRING, e1 STRING, e2 STRING, e3 STRING, e4 STRING, e5 STRING, e6 STRING, e7 STRING, e8 STRING, e9 STRING
) USING punctuated_xml
OPTIONS (path '${XMARK}', rowTag 'keyword', path.word '.', path.e1 'name(..)', path.e2 'name(../..)',
  path.e3 'name(../../..)', path.e4 'name(../../../..)', path.e5 'name(../../../../..)',
  path.e6 'name(../../../../../..)', path.e7 'name(../../../../../../..)', path.e8 'name(../../../../../../../..)',
  path.e9 'name(../../../../../../../../..)');

SELECT word
FROM keyword
WHERE e1 = 'emph' AND e2 = 'text' AND e3 = 'listitem' AND e4 = 'parlist' AND e5 = 'listitem' AND e6 = 'parlist'
  AND e7 = 'description' AND e8 = 'annotation' AND e9 = 'closed_auction';
