-- Who sells in the closed auctions whose annotation has an emphasized keyword in a list within a list.
-- XMark, Query 16, as SQL over the streams of the document; closed auctions with these keywords are declared here.
-- Nothing is kept, and every punctuation goes on.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE closed_auction (seller INT, price DECIMAL(12,2), keywords ARRAY<STRING>) USING punctuated_xml
OPTIONS (path '${XMARK}', rowTag 'closed_auction', path.seller 'seller/@person', prefix.seller 'person',
  path.keywords 'annotation/description/parlist/listitem/parlist/listitem/text/emph/keyword');

SELECT seller FROM closed_auction WHERE keywords IS NOT NULL;
