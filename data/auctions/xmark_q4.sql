-- The reserves of the open auctions in which a certain person bid before another did.
-- XMark, Query 4, as SQL over the streams of the document.
-- XMark asks for person20 and person51; here two are asked for who meet in data/xmark.xml.
-- The end of an auction closes its bidders (bidder.open_auction), unique ids (open_auction.id) purge the auctions.
-- Verdict, followed: answers at once, keeps what is open.

CREATE TABLE open_auction USING xmark OPTIONS (path '${XMARK}', stream 'open_auction');
CREATE TABLE bidder USING xmark OPTIONS (path '${XMARK}', stream 'bidder');

SELECT o.id, o.reserve
FROM open_auction o LEFT SEMI JOIN (
  SELECT e.open_auction
  FROM bidder e JOIN bidder l ON e.open_auction = l.open_auction AND e.position < l.position
  WHERE e.personref = 67 AND l.personref = 1
) b ON b.open_auction = o.id;
