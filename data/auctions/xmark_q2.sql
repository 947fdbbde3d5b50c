-- The first increase of each open auction; null where nobody bids.
-- XMark, Query 2, as SQL over the streams of the document.
-- The end of an auction closes its bidders (bidder.open_auction), and then it is known that there are none.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE open_auction USING xmark OPTIONS (path '${XMARK}', stream 'open_auction');
CREATE TABLE bidder USING xmark OPTIONS (path '${XMARK}', stream 'bidder');

SELECT o.id, b.increase
FROM open_auction o LEFT JOIN (SELECT open_auction, increase FROM bidder WHERE position = 1) b ON b.open_auction = o.id;
